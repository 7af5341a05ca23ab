"""What a client does in a round: Algorithm 1, lines 3–8."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, Array, in_numpy, marked, own_values, remember_last
from fedrecplus.config import Config
from fedrecplus.device import Decoys, Device, Rows, every_item, merge
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import WeightedAggregation
from fedrecplus.parts.pseudo_items import Count
from fedrecplus.parts.virtual_ratings import Predict, put_on_scale
from fedrecplus.protocol import Broadcast, PublicItems, Upload
from fedrecplus.randomness import Key


def client_round(broadcast: Broadcast, device: Device, config: Config) -> tuple[Upload, Device]:
    """Choose pseudo items, train locally, and upload how V's rows moved. Paper: Algorithm 1, lines 3–8"""
    pseudo = pseudo_items(broadcast, device, config)
    update, device = local_update(broadcast, device, config, pseudo)
    return outgoing(update, device.secret, broadcast, config), device


def local_update(broadcast: Broadcast, device: Device, config: Config, pseudo: Decoys) -> tuple[Upload, Device]:
    """The client's own update, before anything is done to it for the way to the server."""
    rows = training_rows(device, pseudo, len(broadcast.V), config)
    trained = config.model.local_training(device, rows, in_double(broadcast))
    update = Upload(device.client, rows.items, trained.delta, statistic=trained.statistic)
    return update, replace(device, U=trained.U, kept=None if config.redraws else pseudo)


@remember_last
def in_double(broadcast: Broadcast) -> Broadcast:
    """The broadcast with its parameters in double precision, which a single device computes in."""
    if broadcast.V.dtype == np.float64:
        return broadcast
    return replace(broadcast, V=broadcast.V.astype(np.float64), dense=broadcast.dense.astype(np.float64))


def training_rows(device: Device, pseudo: Decoys, items: int, config: Config) -> Rows:
    """The rows that a client trains on and uploads: its rated and pseudo items or, in some models, all items."""
    return every_item(device, items) if config.model.ALL_ITEMS else merge(device, pseudo)


def outgoing(update: Upload, secret: Key, broadcast: Broadcast, config: Config) -> Upload:
    """The chain that every update passes on its device: weigh, clip and add noise, then what the channel does."""
    upload = weigh(update, broadcast, config)
    for chosen in (config.privacy, config.channel):
        upload = chosen.protect(upload, secret, broadcast)
        if type(upload) is not Upload:
            raise UserError(
                f"{chosen.kind}.rule = {chosen.rule!r}: protect gave no upload, but {type(upload).__name__}",
                "return an Upload; fedrecplus.testing says what is wrong",
            )
    return upload


def weigh(update: Upload, broadcast: Broadcast, config: Config) -> Upload:
    """Where clients weigh themselves: w·Δ and w instead of Δ.

    Ours: the server then needs only sums, which secure aggregation can give it without any client's Δ.
    """
    rule = config.aggregation
    if not isinstance(rule, WeightedAggregation) or not rule.weighs_on_client:
        return update
    weight = weight_of(update, broadcast, rule)
    return replace(update, delta=weight * update.delta, statistic=weight * update.statistic, weight=weight)


def weight_of(update: Upload, broadcast: Broadcast, rule: WeightedAggregation[Any]) -> float:
    """The rule's weight of a client, if it is one."""
    weight = rule.weight(update.items, update.delta, broadcast)
    check_weights(np.asarray(weight), update.delta, np.array(update.client), rule)
    return float(weight)


def check_weights(
    weights: NDArray[Any], delta: NDArray[Any], clients: NDArray[np.int64], rule: WeightedAggregation[Any]
) -> None:
    """Refuse numbers that are no weights, unless updates are none any more."""
    if weights.shape != clients.shape:
        raise UserError(
            f"aggregation.rule = {rule.rule!r} gave weights of shape {weights.shape}, not {clients.shape}",
            "give one for each client: items are (…, n), delta is (…, n, columns), weights are (…)",
        )
    wrong = ~((weights > 0.0) & (weights < np.inf))
    if wrong.any() and np.isfinite(delta).all():
        raise UserError(
            f"aggregation.rule = {rule.rule!r} gave client {clients[wrong][0]} the weight {weights[wrong][0]:g}",
            "give positive numbers; fedrecplus.testing.AggregationContract says what is wrong",
        )


def pseudo_items(broadcast: Broadcast, device: Device, config: Config) -> Decoys:
    """The client's pseudo items of this round: kept or drawn, kept ratings or fresh ones.

    Paper: Algorithm 1, line 3
    Deviation: the set is kept from the client's first round unless told otherwise; items that came anew each round
    would be told from rated ones, which come every round.
    """
    kept, chosen, filled = device.kept, config.pseudo_items, config.virtual_ratings
    if kept is None and not config.hides_rows:
        return Decoys(np.empty(0, np.int64), np.empty(0))
    if kept is not None and not filled.settings.refresh:
        return kept
    if kept is not None:
        items = kept.items
    else:
        extra = extra_rows(device.items, broadcast.public, config)
        count = chosen.count(len(device.items), len(broadcast.V), extra)
        items = select_items(count, device, broadcast, config)
    if len(items) == 0:
        return Decoys(items, np.empty(0))
    return Decoys(items, virtual_ratings(items, device, broadcast, config))


def extra_rows(rated: NDArray[np.int64], public: PublicItems, config: Config) -> int:
    """Rows that the rule gives an upload beyond its size class because of what the client rated."""
    items, rows = config.pseudo_items.extra_rows(public)
    return rows if np.isin(rated, items).any() else 0


def select_items(count: Count, device: Device, broadcast: Broadcast, config: Config) -> NDArray[np.int64]:
    """What the rule chooses, if it keeps what rules promise: so many unrated items, ascending, each once."""
    chosen = config.pseudo_items
    items = chosen.select(count, device, broadcast)
    if not chosen.is_built_in and not _are_unrated(in_numpy(items), np.asarray(count), device, len(broadcast.V)):
        raise UserError(
            f"pseudo_items.rule = {chosen.rule!r} chose no {np.max(count)} different unrated items in ascending order",
            "correct its select; fedrecplus.testing.PseudoItemsContract says what is wrong",
        )
    return items


def _are_unrated(items: NDArray[Any], count: NDArray[Any], device: Device, every: int) -> bool:
    """Whether these are so many unrated items each, ascending, and then nothing."""
    width = int(count.max(initial=0))
    if items.shape != (*count.shape, width) or (width and items.dtype.kind not in "iu"):
        return False
    if width == 0:
        return True
    present = np.arange(width) < count[..., None]
    inside = (items[present] >= 0).all() and (items[present] < every).all() and (items[~present] == NOTHING).all()
    rising = (np.diff(items.astype(np.int64), axis=-1) > 0)[present[..., 1:]].all()
    return bool(
        inside
        and rising
        and not own_values(marked(in_numpy(device.items), every), items.astype(np.int64))[present].any()
    )


def virtual_ratings(
    items: NDArray[np.int64], device: Device, broadcast: Broadcast, config: Config, predict: Predict | None = None
) -> Array:
    """What clients claim to have given pseudo items, on the scale where that is asked for."""
    filled = config.virtual_ratings
    predict = predictions_of(device, in_double(broadcast), config) if predict is None else predict
    ratings = filled.fill(items, device, broadcast, predict)
    if np.shape(ratings) != items.shape:
        raise UserError(
            f"virtual_ratings.rule = {filled.rule!r} gave ratings of the shape {np.shape(ratings)} for items of the "
            f"shape {tuple(items.shape)}",
            "correct its fill: a rating for each item, of one client or of many; fedrecplus.testing says what is wrong",
        )
    return put_on_scale(ratings, items, device, filled.settings, broadcast.round)


def predictions_of(device: Device, broadcast: Broadcast, config: Config) -> Predict:
    """Clients' own predictions, for rules that fill with them."""

    def predict(items: NDArray[np.int64], steps: int = 0) -> Array:
        return config.model.predict(items, device, broadcast, steps)

    return predict
