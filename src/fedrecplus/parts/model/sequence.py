"""``joint``, and a table of what is chosen soon after what: lists say what comes next, by sums alone.

V and W are those of ``joint``. T (``_transitions.py``) is a third table beside them, as wide as both. Its rounds come
after those of V and W, which it needs nothing of, so that no round's upload is wider than another's. Ratings, and lists
without an order, are as in ``joint``. Lists that follow what was chosen last add up both: what people like this one
choose, and what is chosen close to what it chose last.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, namespace, remember_last, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import Aggregation
from fedrecplus.parts.assumptions import OfChoices
from fedrecplus.parts.model import Trained, Turn
from fedrecplus.parts.model._transitions import Settings, Transitions, scaled_rows, width_of
from fedrecplus.parts.model.joint import Joint, Settings as JointSettings
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.parts.recency import nearness_of
from fedrecplus.parts.server_optimizer import ServerOptimizer
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums

SHARE = 5 / 17
"""rounds of T for each of V and W: so many come close enough to its strongest directions"""
FEWEST_ROUNDS = 3
"""of T: after fewer it ranks clearly worse"""


class Sequence(Joint[Settings]):
    """What people choose, how they rate it, and what they choose next."""

    NEEDS = frozenset({"order"})

    @functools.cached_property
    def transitions(self) -> Transitions:
        """What trains T."""
        return Transitions(self.settings, self.rule)

    @functools.cached_property
    def joint(self) -> Joint[Settings]:
        """What trains V and W."""
        return Joint(self.settings, self.rule)

    def check_with(self, config: Any) -> None:
        """Refuse weights by what a round's uploads come to, and a budget: its noise is planned for rounds of a kind."""
        super().check_with(config)
        if isinstance(config.privacy, BudgetMechanism):
            raise UserError(
                f"privacy.rule={config.privacy.rule} with model.rule={self.rule}: V and W would have the noise of a "
                "training that ends with them, and T's rounds would spend more than ε",
                "set model.rule=joint: under a budget nothing is validated, and lists follow no order",
            )
        if config.aggregation.against_mean or config.aggregation.covariance_kind != "none":
            raise UserError(
                "aggregation.global_step=mean and aggregation.covariance are of one width, and T's rounds have another",
                "set aggregation.global_step=last and aggregation.covariance=none",
            )

    def tree(self) -> dict[str, Leaf]:
        """V, W and T, and W's statistic."""
        joint, T = super().tree(), self.transitions.tree()
        return {"V": joint["V"], "W": joint["W"], **T, "gram": joint["gram"]}

    def turn(self, config: Any, number: int) -> Turn:
        """V's and W's, as if there were no T; then T's, where each device counts alike and the sum is the step."""
        rounds = rounds_before(config.server.rounds)
        if number < rounds:
            server = msgspec.structs.replace(config.server, rounds=rounds)
            return Turn(replace(config, model=self.joint, server=server), slice(0, self.width))
        own = replace(
            config,
            model=self.transitions,
            aggregation=Aggregation.choose("uniform", weigh_on="client"),
            server_optimizer=ServerOptimizer.choose("sgd", learning_rate=1.0),
            server=msgspec.structs.replace(config.server, cooldown=0.0),
        )
        return Turn(own, slice(self.width, None))

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """All three before training: noise."""
        return np.hstack([part.start_items(seed, items, public) for part in (self.joint, self.transitions)])

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """Of all three tables, where all take part."""
        parts = ((self.joint, slice(0, self.width)), (self.transitions, slice(self.width, None)))
        joint, T = (part.local_training(device, rows, columns_of(broadcast, own)) for part, own in parts)
        return joint._replace(delta=namespace(broadcast.V).concat([joint.delta, T.delta], axis=-1))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """The servers' halves, each of its own columns."""
        parts = ((self.joint, slice(0, self.width)), (self.transitions, slice(self.width, None)))
        steps = (part.update_items(replace(sums, total=sums.total[:, own]), V[:, own], public) for part, own in parts)
        return np.hstack(list(steps))

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (columns of ``joint``, A⁻¹ T)."""
        T = self.transitions.item_columns(V[:, self.width :], public)
        columns: NDArray[Any] = namespace(V).concat([self.joint.item_columns(V[:, : self.width], public), T], axis=1)
        return columns

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Weights of ``joint``: T predicts no ratings."""
        return self._with(self.joint.fold_in(self._own(X), items, ratings, public))

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Those of ``joint``."""
        return self._with(self.joint.weight_shares(self._own(X), items, ratings, public))

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Those of ``joint``; where lists follow what was chosen last, also the sum of A T over last choices."""
        k, own = self.width, self._own(X)
        z = self._with(self.joint.list_weights(w[..., :-k], own, items, ratings, public, recency))
        if recency is not None:
            z[..., -k:] = namespace(X).sum(self._following(X, items, public, recency), axis=-2)
        return z

    def list_weight_shares(
        self, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """What each choice adds to both."""
        shares = self._with(self.joint.list_weight_shares(self._own(X), items, ratings, public, recency))
        if recency is not None:
            shares[:, -self.width :] = self._following(X, items, public, recency)
        return shares

    def _following(self, X: Array, items: Items, public: PublicItems, recency: Array) -> Array:
        near, T = nearness_of(recency), X[:, -self.width :]
        return self.settings.sequence_weight * self.transitions.following(T, items, public, near)

    def _own(self, X: Array) -> Array:
        return joint_columns(X, self.width)

    def _with(self, w: Array) -> Array:
        """Weights of ``joint``, and zeros for T's columns."""
        nothing = zeros((*w.shape[:-1], self.width), w)
        return namespace(w).concat([w, nothing], axis=-1)  # type: ignore[no-any-return]

    def beside(self, broadcast: Broadcast) -> Array:
        """What a choice adds to the row of another beside it, for an attacker: its row of A T over a public size."""
        return np.asarray(scaled_rows(self.transitions, columns_of(broadcast, slice(self.width, None)))[0])

    @property
    def width(self) -> int:
        """Columns of V and W, and of T."""
        return width_of(self.settings)

    def choosing(self) -> OfChoices:
        """What an attacker knows of W's columns, which T's come after."""
        return OfChoices(slice(self.settings.factors, self.width))


def followed(config: Any) -> Any | None:
    """The settings with T's rounds after those of V and W; None where these are too few, or nothing is summed."""
    if type(config.model) is not Joint or config.channel.VIEW != "sums":
        return None
    weighs_whole = config.aggregation.against_mean or config.aggregation.covariance_kind != "none"
    longer = with_transitions(config)
    enough = longer.server.rounds - config.server.rounds >= FEWEST_ROUNDS
    return longer if enough and not weighs_whole else None


def with_transitions(config: Any) -> Any:
    """Settings of ``joint`` with T besides, and its rounds after the others."""
    model = Sequence(Settings(**config.model.values), "sequence")
    rounds = round(config.server.rounds * (1.0 + SHARE))
    return replace(config, model=model, server=msgspec.structs.replace(config.server, rounds=rounds))


def without_transitions(config: Any) -> Any:
    """Settings of ``joint`` alone, in as many rounds as V and W have."""
    own = {field.name for field in msgspec.structs.fields(JointSettings)}
    values = {name: value for name, value in config.model.values.items() if name in own}
    server = msgspec.structs.replace(config.server, rounds=rounds_before(config.server.rounds))
    return replace(config, model=Joint(JointSettings(**values), "joint"), server=server)


def rounds_before(total: int) -> int:
    """How many of so many rounds are of V and W.

    >>> rounds_before(22)
    17
    """
    return round(total / (1.0 + SHARE))


@remember_last
def joint_columns(X: NDArray[Any], factors: int) -> NDArray[Any]:
    """X without T's columns."""
    return namespace(X).asarray(X[:, :-factors], copy=True)  # type: ignore[no-any-return]


@remember_last
def columns_of(broadcast: Broadcast, own: slice) -> Broadcast:
    """The broadcast of some columns of the table."""
    return replace(broadcast, V=broadcast.V[:, own], last_step=broadcast.last_step[:, own])
