"""What the server does in a round: Algorithm 1, lines 9–11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, namespace
from fedrecplus.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import unit_rows
from fedrecplus.parts.aggregation import (
    RobustAggregation,
    WeightedAggregation,
    check_full,
    update_covariance,
    update_variance,
)
from fedrecplus.parts.channel import SummingChannel
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.protocol import Broadcast, PublicItems, Sums, Traffic, Upload
from fedrecplus.rounds.client import weight_of


@dataclass(frozen=True)
class ServerState:
    """All that the server keeps between rounds."""

    round: int
    V: NDArray[Any]
    last_step: NDArray[Any]
    last_covariance: NDArray[Any]
    moments: list[NDArray[Any]]
    dense: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """the model's shared dense arrays beside each other"""
    dense_moments: list[NDArray[Any]] = field(default_factory=list)
    head: tuple[int, ...] = ()
    """which candidates of the model's ``head_choices`` federated validation chose"""

    def of_columns(self, columns: slice) -> ServerState:
        """Some columns of all tables."""
        V, last_step, *moments = (table[:, columns].copy() for table in (self.V, self.last_step, *self.moments))
        return replace(self, V=V, last_step=last_step, moments=moments)

    def with_columns(self, columns: slice, other: ServerState) -> ServerState:
        """The tables of another state in their columns. A rule that keeps no moments leaves them as they are."""
        tables = [self.V.copy(), self.last_step.copy(), *(table.copy() for table in self.moments)]
        for table, own in zip(tables, (other.V, other.last_step, *other.moments), strict=False):
            table[:, columns] = own
        return replace(other, V=tables[0], last_step=tables[1], moments=tables[2:])


def start_server(config: Config, public: PublicItems, dtype: Any = np.float64) -> ServerState:
    """The server before the first round."""
    model, items = config.model, len(public.popularity)
    V = model.start_items(config.seed, items, public).astype(dtype)
    dense = model.start_dense(config.seed).astype(dtype)
    if (V.shape[1], dense.shape) != (model.columns, (model.dense_size,)):
        raise UserError(
            f"model.rule = {model.rule!r} starts with {V.shape[1]} columns and {dense.size} dense numbers, and its "
            f"tree has {model.columns} and {model.dense_size}",
            "let tree name all columns of start_items, and all of start_dense",
        )
    kind = config.aggregation.covariance_kind
    if kind == "full":
        check_full(V.size)
    shape = {"none": (0, V.shape[1]), "diagonal": V.shape, "full": (V.size, V.size)}[kind]
    moments, dense_moments = ([np.zeros_like(x) for _ in range(config.server_optimizer.MOMENTS)] for x in (V, dense))
    return ServerState(0, V, np.zeros_like(V), np.zeros(shape, dtype=V.dtype), moments, dense, dense_moments)


def encode_items(V: NDArray[Any], public: PublicItems, config: Config) -> Array:
    """Encoded items with unit rows, for this V; nothing where no part looks at them."""
    if not config.needs_features:
        return np.zeros((0, 0))
    encoder = config.encoder
    return unit_rows(encoder.encode(np.asarray(V, dtype=np.float64), public))


def broadcast(state: ServerState, public: PublicItems, features: Array) -> Broadcast:
    """What every client of the next round is told. Paper: Algorithm 1, line 10"""
    return Broadcast(state.round, state.V, state.last_step, state.last_covariance, features, public, state.dense)


def server_round(state: ServerState, sums: Sums, public: PublicItems, config: Config) -> ServerState:
    """V ← V + η Σ_u p_u Δ_u; the applied step is told in the next round. Paper: Algorithm 1, lines 9–11

    The sums are as ``released``: whoever has them and the state before computes the same.
    """
    optimizer, model = config.server_optimizer, config.model
    if model.updates_items:
        aggregate = model.update_items(sums, state.V, public)
    else:
        aggregate = divide(sums, config.aggregation.normalise)
    xp, precision = namespace(state.V), state.V.dtype
    step, moments = optimizer.step(xp.astype(aggregate, precision, copy=False), state.moments, state.round)
    step = xp.astype(cooldown(config, state.round) * step, precision, copy=False)
    covariance = sums.covariance
    if covariance.size:
        covariance = covariance.astype(precision, copy=False)
        covariance = optimizer.rate**2 * covariance / max(sums.clients, 1)
    else:
        covariance = state.last_covariance
    dense, dense_moments = dense_step(state, sums, public, config)
    return ServerState(state.round + 1, state.V + step, step, covariance, moments, dense, dense_moments, state.head)


def dense_step(
    state: ServerState, sums: Sums, public: PublicItems, config: Config
) -> tuple[NDArray[Any], list[NDArray[Any]]]:
    """The dense arrays after a round: the mean change over the cohort, by the optimizer that moves V.

    Where noise hides how many took part, public figures say how many are expected, as they do of every row.
    """
    size, optimizer = len(state.dense), config.server_optimizer
    if size == 0:
        return state.dense, state.dense_moments
    people = sums.overall
    if isinstance(config.privacy, BudgetMechanism):
        people = config.cohort.fraction * config.answering * _people(public)
    divisor = 1.0 if config.aggregation.normalise == "none" else people
    mean = sums.statistic[:size] / divisor if divisor > 0 else np.zeros(size)
    step, moments = optimizer.step(mean.astype(state.dense.dtype), state.dense_moments, state.round)
    return state.dense + (cooldown(config, state.round) * step).astype(state.dense.dtype), moments


def _people(public: PublicItems) -> int:
    if public.people == 0:
        raise UserError(
            "the public figures don't say of how many people they are, and with a privacy budget nothing else does",
            "take statistics.source=secure-sum, or a catalogue that says it",
        )
    return public.people


def cooldown(config: Config, round_number: int) -> float:
    """Factor on the step: 1, and in the last rounds of a training falling linearly to 0.

    After: Hägele et al. 2024 (a constant step with a cooldown)
    """
    left = 1.0 - round_number / config.server.rounds
    return min(1.0, left / config.server.cooldown) if config.server.cooldown > 0 else 1.0


def divide(sums: Sums, normalise: str) -> NDArray[Any]:
    """A = Σ w Δ over Σ w: per item among those who uploaded it, over the cohort, or not at all.

    Rows that nobody uploaded stay zero.

    Paper: Eq. (12), over all clients. After: Lin, Pan, Ming 2020 (FedRec), per item
    """
    xp, total, per_item = namespace(sums.total), sums.total, sums.weights[:, None]
    if normalise == "none":
        return total
    if normalise == "cohort":
        return total / sums.overall if sums.overall > 0 else total
    mean = xp.where(per_item > 0, total / xp.where(per_item > 0, per_item, 1.0), 0.0)
    return xp.astype(mean, total.dtype)  # type: ignore[no-any-return]


def add_up(uploads: Sequence[Upload], message: Broadcast, config: Config) -> tuple[Sums, Traffic]:
    """What the channel lets the server know of a cohort's uploads, and what the channel's messages cost."""
    if isinstance(config.channel, SummingChannel):
        return config.channel.add_up(uploads, message, config.seed)
    return sums_of(uploads, message, config), Traffic(sum(upload.bytes for upload in uploads), 0)


def sums_of(uploads: Sequence[Upload], message: Broadcast, config: Config) -> Sums:
    """What single uploads amount to, by the chosen rule. Paper: Algorithm 1, line 9"""
    if isinstance(config.aggregation, RobustAggregation):
        table = config.aggregation.aggregate(uploads, message)
        counts = np.bincount(np.concatenate([[], *(u.items for u in uploads)]).astype(np.int64), minlength=len(table))
        return Sums(table * counts[:, None], counts.astype(np.float64), float(len(uploads)), len(uploads))
    weights = weights_of(uploads, message, config)
    covariance = _covariance(uploads, weights, message, config)
    return replace(weighted_sum(uploads, weights, message.V.shape), covariance=covariance)


def weighted_sum(uploads: Sequence[Upload], weights: Sequence[float], shape: tuple[int, ...]) -> Sums:
    """Σ w Δ and Σ w, row by row."""
    total, per_item = np.zeros(shape), np.zeros(shape[0])
    statistic = np.zeros_like(uploads[0].statistic) if uploads else np.zeros(0)
    for upload, weight in zip(uploads, weights, strict=True):
        statistic += upload.statistic if upload.weight is not None else weight * upload.statistic
        # a client that weighs itself sends w·Δ
        total[upload.items] += upload.delta if upload.weight is not None else weight * upload.delta
        per_item[upload.items] += weight * (1.0 if upload.counts is None else upload.counts)
    clipped = float(sum(upload.clipped for upload in uploads))
    return Sums(total, per_item, float(sum(weights)), len(uploads), statistic=statistic, clipped=clipped)


def weights_of(uploads: Sequence[Upload], message: Broadcast, config: Config) -> list[float]:
    """Each client's weight: as it says itself, or by the rule."""
    rule = config.aggregation
    if not isinstance(rule, WeightedAggregation):
        raise UserError(f"aggregation.rule = {rule.rule!r} gives no weights", "choose one that does, such as uniform")
    if rule.weighs_on_client:
        return [_own_weight(upload) for upload in uploads]
    if rule.against_mean:
        mean = divide(weighted_sum(uploads, [1.0] * len(uploads), message.V.shape), rule.normalise)
        message = replace(message, last_step=config.server_optimizer.rate * mean)
    return [weight_of(upload, message, rule) for upload in uploads]


def _covariance(uploads: Sequence[Upload], weights: Sequence[float], message: Broadcast, config: Config) -> Array:
    """Σ_g/B, summed over clients: their update covariances, for the next round's distances; empty if not needed.

    Ours: the paper has Σ_g in M of Eq. (18) and leaves open what it is.
    """
    kind = config.aggregation.covariance_kind
    if kind == "none":
        return np.zeros((0, 0))
    total, size = np.zeros(message.last_covariance.shape), config.aggregation.batch_size
    for upload, weight in zip(uploads, weights, strict=True):
        delta = upload.delta if upload.weight is None else upload.delta / weight
        if kind == "diagonal":
            total[upload.items] += update_variance(delta, size)
        else:
            total += update_covariance(upload.items, delta, len(message.V), size)
    return total


def _own_weight(upload: Upload) -> float:
    if upload.weight is None:
        raise UserError(f"client {upload.client} sent no weight, and clients weigh themselves here")
    return upload.weight
