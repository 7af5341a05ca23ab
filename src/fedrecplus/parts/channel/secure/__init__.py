"""Secure sums: masks that cancel hide every upload, and the server learns the cohort's sums alone.

After: Bonawitz et al. 2017 (CCS), Bell et al. 2020 (CCS)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Items
from fedrecplus.errors import UserError
from fedrecplus.lazy import lazily
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.channel._groups import Grouping, joined
from fedrecplus.parts.channel._ring import RingLayout, add_all, decode
from fedrecplus.parts.channel._summing import RingSettings, expected_in, senders_of, spanned, too_few, vectors_of
from fedrecplus.parts.channel.secure.outline import outline
from fedrecplus.parts.channel.secure.server_state import Aborted as Aborted, ServerOptions
from fedrecplus.parts.channel.secure.simulation import VANISHING, secure_sum, session_of, shuffling
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.settings import Annotated, number, text

if TYPE_CHECKING:
    from fedrecplus.parts.channel.secure.client import SecureClient as SecureClient
    from fedrecplus.parts.channel.secure.keys import check_signature as check_signature
    from fedrecplus.parts.channel.secure.messages import (
        Advertisement as Advertisement,
        Refused as Refused,
        pack as pack,
        unpack as unpack,
    )
    from fedrecplus.parts.channel.secure.server import SecureServer as SecureServer

_log = logging.getLogger("fedrecplus")


class Settings(RingSettings):
    """Options of the channel."""

    graph: ClassVar[Literal["sparse", "complete"]] = "sparse"
    """who shares masks: few neighbours in cohorts of 100 and more, or everybody"""
    demonstration: Annotated[
        bool, text("deployed: cohorts so small that a sum may be taken apart; devices refuse unless their owners agree")
    ] = False
    groups: Annotated[
        int, number(1, 10**6, "random groups of the cohort with a sum each, against malicious clients; 1: one sum")
    ] = 1
    corrupted: Annotated[float, number(0, 0.49, "share of the cohort that may collude with the server")] = 0.1
    dropout_bound: ClassVar[float] = 0.1
    """share of the cohort that may vanish in a round: the graph of neighbours is made for it"""
    dropout: Annotated[float, number(0, 0.999, "simulation: share of the cohort that vanishes between stages")] = 0.0


class Secure(RingChannel[Settings]):
    """Masks that cancel."""

    def check_with(self, config: Any) -> None:
        """Refuse what can't be together with sums over rings."""
        super().check_with(config)
        if self.settings.rows != "whole" and not config.hides_rows and not config.simulation_only:
            raise UserError(
                f"channel.rows={self.settings.rows} without pseudo items shows the server which items were rated",
                "set channel.rows=whole, or a pseudo_items.rule",
            )
        if self.settings.groups > 1 and config.privacy.rule in ("central", "distributed"):
            raise UserError(
                "channel.groups beside a privacy budget: noise is planned for one sum of all",
                "set channel.groups=1, or privacy.rule=none",
            )

    @property
    def demonstration(self) -> bool:
        """As the settings say."""
        return self.settings.demonstration

    def add_up(self, uploads: Sequence[Upload], message: Broadcast, seed: int) -> tuple[Sums, Traffic]:
        """The sums of a simulated cohort: by the whole protocol or, with equal results, by its ring vectors alone.

        ``UserError`` where too few clients are left. Noise of devices is not added here: a simulation draws that of
        all together (``rounds/release.py``). With groups, each is a cohort of its own.
        """
        if self.settings.groups == 1:
            return self._add_up(uploads, message, seed)
        grouping = Grouping(self.settings.groups, session_of(subkey(seed, "groups", message.round)))
        places = grouping.of([upload.client for upload in uploads])
        parts = [self._add_up([uploads[place] for place in group], message, seed) for group in places]
        sums, odd = joined([part for part, _ in parts], expected_in(1, message.public))
        if odd:
            _log.warning("round %d: %d of %d groups are left out as odd", message.round, len(odd), len(parts))
        costs = [cost for _, cost in parts]
        return sums, Traffic(sum(cost.bytes_up for cost in costs), sum(cost.bytes_down for cost in costs))

    def _add_up(self, uploads: Sequence[Upload], message: Broadcast, seed: int) -> tuple[Sums, Traffic]:
        """The sums of one group, or of the whole cohort."""
        clients = np.array([upload.client for upload in uploads], dtype=np.int64)
        rows, encoding = spanned(uploads, message, self.settings)
        layout = encoding.layout
        vanish = vanishing(clients, message.round, seed, self.settings)
        vectors = vectors_of(uploads, rows, encoding, message.round, seed)
        if self.settings.cryptography == "computed":
            key, options = subkey(seed, "secure", message.round), server_options(self.settings)
            try:
                done = secure_sum(vectors, layout, vanish, options, key, self.settings.fewest_contributors)
            except Aborted as reason:
                raise failed(message.round, reason) from None
            return decode(done.total, encoding), Traffic(done.bytes_up, done.bytes_down)
        survivors, traffic = without_masks(rows, layout, vanish, message.round, seed, self.settings)
        return decode(add_all((vectors[client] for client in survivors), layout), encoding), traffic

    @property
    def arriving(self) -> float:
        """Those whose vectors come: who vanishes before the last stage alone is in the sum."""
        return 1.0 - self.settings.dropout * (1.0 - 1.0 / len(VANISHING))


def without_masks(
    rows: Mapping[int, Items | None],
    layout: RingLayout,
    vanish: Mapping[int, str],
    round_number: int,
    seed: int,
    settings: Settings,
) -> tuple[list[int], Traffic]:
    """The survivors and the bytes of a sum whose masks are not computed."""
    sizes = {client: layout.items if each is None else len(each) for client, each in rows.items()}
    vanish = with_refusals(rows, vanish, layout, settings)
    shuffle = shuffling(subkey(seed, "secure", round_number))
    try:
        return outline(sizes, layout, vanish, server_options(settings), shuffle)
    except Aborted as reason:
        raise failed(round_number, reason) from None


def with_refusals(
    rows: Mapping[int, Items | None], vanish: Mapping[int, str], layout: RingLayout, settings: Settings
) -> dict[int, str]:
    """Who vanishes, and who refuses to unmask because too few survivors span one of its rows."""
    outcome, fewest = dict(vanish), settings.fewest_contributors
    before = senders_of(rows.values(), layout)
    after = senders_of((each for client, each in rows.items() if vanish.get(client) in (None, "reveal")), layout)
    if before is not None and after is not None:
        few = too_few(before, after, fewest)
        outcome |= {client: "reveal" for client, each in rows.items() if client not in vanish and few[each].any()}
    return outcome


def server_options(settings: Settings, honest: float = 0.0) -> ServerOptions:
    """What the server asks of a cohort; ``honest`` is the share that must survive where devices add noise."""
    return ServerOptions(
        settings.least_cohort, settings.corrupted, settings.dropout_bound, settings.graph == "sparse",
        settings.fewest_contributors, honest,
    )  # fmt: skip


def vanishing(clients: NDArray[np.int64], round_number: int, seed: int, settings: Settings) -> dict[int, str]:
    """Who vanishes between the stages of a simulated round, and before which: as many before each."""
    if settings.dropout == 0.0:
        return {}
    draws = uniform(subkey(seed, "vanishing", round_number), clients) / settings.dropout
    gone = np.flatnonzero(draws < 1.0)
    return {int(clients[place]): VANISHING[int(draws[place] * len(VANISHING))] for place in gone}


def failed(round_number: int, reason: Aborted) -> UserError:
    """The error of a simulated round whose sum was aborted."""
    return UserError(
        f"the secure sum of round {round_number} was aborted: {reason}",
        "ask more clients (cohort.fraction), or look at channel.least_cohort and dropout",
    )


lazily(__name__)
