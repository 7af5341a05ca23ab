"""What the server does in a round: Algorithm 1, lines 9–11."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._covariance import update_covariance, update_variance
from fedrecplus.aggregation._joining import join
from fedrecplus.config.settings import Config
from fedrecplus.gradients import contrasted, floor_step, server_contrast
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast, PublicItems, Upload

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ServerState:
    """All that the server keeps between rounds."""

    round: int
    V: Array
    last_step: Array
    last_spread: Array
    moments: list[Array]
    popularity: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """how often each item was rated, as everybody may know; needed where ``model.floor`` is set"""


def broadcast(state: ServerState, mean: float, public: PublicItems, features: Array) -> Broadcast:
    """What every client of the next round is told. Paper: Algorithm 1, line 10"""
    return Broadcast(state.round, state.V, state.last_step, state.last_spread, mean, features, public)


def server_round(state: ServerState, uploads: Sequence[Upload], settings: Config) -> ServerState:
    """V ← V + η Σ_u p_u Δ_u. Paper: Algorithm 1, lines 9–11"""
    return apply(state, aggregate_of(state, uploads, settings), spread_of(uploads, state, settings), settings)


def apply(state: ServerState, aggregate: Array, spread: Array, settings: Config) -> ServerState:
    """Move V by the aggregate, as the server step says; the applied step and spread are told in the next round."""
    rate = global_rate(settings, state.round)
    server = replace(settings.server, learning_rate=rate)
    aggregate = aggregate.astype(state.V.dtype, copy=False)
    if settings.model.floor > 0:
        uploaded = aggregate.any(axis=1, keepdims=True)
        aggregate = aggregate + uploaded * floor_step(state.V, state.popularity, settings, state.round)
    contrast = server_contrast(state.popularity, settings, state.round)
    aggregate = contrasted(aggregate, contrast, settings.model.factors)
    step, moments = part("server_steps", server.step).step(aggregate, state.moments, server, state.round)
    return ServerState(state.round + 1, state.V + step, step, rate**2 * spread, moments, state.popularity)


def global_rate(settings: Config, round_number: int) -> float:
    """The server's step size in a round."""
    return settings.server.learning_rate * settings.server.learning_rate_decay**round_number


def aggregate_of(state: ServerState, uploads: Sequence[Upload], settings: Config) -> Array:
    """What the round's uploads amount to, by the chosen rule."""
    how = settings.aggregation
    shape = state.V.shape
    rule = part("aggregation", how.rule)
    if hasattr(rule, "aggregate"):
        table: Array = rule.aggregate(uploads, shape, settings)
        return table
    if how.weigh_on == "client":
        return join(uploads, [_weight(upload) for upload in uploads], shape, how)
    return join(uploads, weights_of(state, uploads, settings), shape, how)


def weights_of(state: ServerState, uploads: Sequence[Upload], settings: Config) -> list[float]:
    """Each client's weight by a rule that gives weights, from uploads that no client has weighed itself."""
    rule, how = part("aggregation", settings.aggregation.rule), settings.aggregation
    target, spread = state.last_step.astype(np.float64), state.last_spread.astype(np.float64)
    if how.global_step == "mean":
        target = global_rate(settings, state.round) * join(uploads, [1.0] * len(uploads), state.V.shape, how)
    return [float(rule.weight(upload.items, upload.delta, target, spread, settings)) for upload in uploads]


def spread_of(uploads: Sequence[Upload], state: ServerState, settings: Config) -> Array:
    """Σ_g/B: the mean of the clients' update covariances, for the next round's distances; empty if not needed.

    Ours: the paper has Σ_g in M of Eq. (18) and leaves open what it is.
    """
    spread = np.zeros_like(state.last_spread)
    if settings.aggregation.covariance == "none":
        return spread
    for upload in uploads:
        delta = upload.delta if upload.weight is None else upload.delta / _weight(upload)
        if settings.aggregation.covariance == "diagonal":
            spread[upload.items] += update_variance(delta, settings)
        else:
            spread += update_covariance(upload.items, delta, len(state.V), settings)
    mean: Array = spread / max(len(uploads), 1)
    return mean


def _weight(upload: Upload) -> float:
    if upload.weight is None:
        raise ValueError("an upload without a weight where clients weigh themselves")
    return upload.weight
