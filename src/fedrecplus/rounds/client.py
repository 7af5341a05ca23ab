"""What a client does in a round: Algorithm 1, lines 3–8."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.device import Device, PseudoItems, Rows, every_item, merge
from fedrecplus.errors import UserError
from fedrecplus.parts.pseudo_items import pseudo_count
from fedrecplus.parts.virtual_ratings import Predict, put_on_scale
from fedrecplus.protocol import Broadcast, PublicItems, Upload
from fedrecplus.randomness import Key

Array = NDArray[np.float64]


def client_round(broadcast: Broadcast, device: Device, config: Config) -> tuple[Upload, Device]:
    """Choose pseudo items, train locally, and upload how V's rows moved. Paper: Algorithm 1, lines 3–8"""
    pseudo = pseudo_items(broadcast, device, config)
    update, device = local_update(broadcast, device, config, pseudo)
    return outgoing(update, device.secret, broadcast, config), device


def local_update(broadcast: Broadcast, device: Device, config: Config, pseudo: PseudoItems) -> tuple[Upload, Device]:
    """The client's own update, before anything is done to it for the way to the server."""
    rows = rows_of(device, pseudo, len(broadcast.V), config)
    U, V, *statistic = config.model.part.local_training(device, rows, broadcast, config.model.options)
    kept = None if config.redraws else pseudo
    update = Upload(device.client, rows.items, V - broadcast.V[rows.items])
    if statistic:
        update = replace(update, statistic=np.asarray(statistic[0], dtype=np.float64))
    return update, replace(device, U=U, kept=kept)


def rows_of(device: Device, pseudo: PseudoItems, items: int, config: Config) -> Rows:
    """The rows that a client trains on and uploads: its rated and pseudo items or, in some models, all items."""
    return every_item(device, items) if config.uploads_all_items else merge(device, pseudo)


def outgoing(update: Upload, secret: Key, broadcast: Broadcast, config: Config) -> Upload:
    """The chain that every update passes on its device: weigh, clip and add noise, then what the channel does."""
    upload = weigh(update, broadcast, config)
    for chosen in (config.privacy, config.channel):
        if chosen.part.has("protect"):
            upload = chosen.part.protect(upload, secret, broadcast, chosen.options)
            if not isinstance(upload, Upload):
                raise UserError(
                    f"{chosen.kind}.rule = {chosen.rule!r}: protect gave no upload, but {type(upload).__name__}",
                    "return an Upload; fedrecplus.testing says what is wrong",
                )
    return upload


def weigh(update: Upload, broadcast: Broadcast, config: Config) -> Upload:
    """Where clients weigh themselves: w·Δ and w instead of Δ.

    Ours: the server then needs only sums, which secure aggregation can give it without any client's Δ.
    """
    if not config.weighs_on_client:
        return update
    weight = weight_of(update, broadcast, config)
    return replace(update, delta=weight * update.delta, statistic=weight * update.statistic, weight=weight)


def weight_of(update: Upload, broadcast: Broadcast, config: Config) -> float:
    """The rule's weight of a client, if it is one."""
    how = config.aggregation
    weight = float(how.part.weight(update.items, update.delta, broadcast, how.options))
    if np.isfinite(update.delta).all() and not 0.0 < weight < np.inf:
        raise UserError(
            f"aggregation.rule = {how.rule!r} gave client {update.client} the weight {weight:g}",
            "give positive numbers; fedrecplus.testing.AggregationContract says what is wrong",
        )
    return weight


def pseudo_items(broadcast: Broadcast, device: Device, config: Config) -> PseudoItems:
    """The client's pseudo items of this round: kept or drawn, kept ratings or fresh ones.

    Paper: Algorithm 1, line 3
    Deviation: the set is kept from the client's first round unless told otherwise; items that came anew each round
    would be told from rated ones, which come every round.
    """
    kept, chosen, filled = device.kept, config.pseudo_items, config.virtual_ratings
    if kept is None and not config.hides_rows:
        return PseudoItems(np.empty(0, np.int64), np.empty(0))
    if kept is not None and not filled.options.refresh:
        return kept
    if kept is not None:
        items = kept.items
    else:
        extra = extra_rows(device.items, broadcast.public, config)
        count = pseudo_count(len(device.items), len(broadcast.V), chosen.options, extra)
        items = select_items(count, device, broadcast, config)
    if len(items) == 0:
        return PseudoItems(items, np.empty(0))
    return PseudoItems(items, virtual_ratings(items, device, broadcast, config))


def extra_rows(rated: NDArray[np.int64], public: PublicItems, config: Config) -> int:
    """Rows that the rule gives an upload beyond its size class because of what the client rated."""
    chosen = config.pseudo_items
    if not chosen.part.has("extra_rows"):
        return 0
    items, rows = chosen.part.extra_rows(public, chosen.options)
    return int(rows) if np.isin(rated, items).any() else 0


def select_items(count: int, device: Device, broadcast: Broadcast, config: Config) -> NDArray[np.int64]:
    """What the rule chooses, if it keeps what rules promise: so many unrated items, ascending, each once."""
    chosen = config.pseudo_items
    items = np.asarray(chosen.part.select(count, device, broadcast, chosen.options))
    kept = items.shape == (count,) and (count == 0 or items.dtype.kind in "iu")
    if kept and count:
        in_range = items[0] >= 0 and items[-1] < len(broadcast.V)
        kept = bool(in_range and (np.diff(items.astype(np.int64)) > 0).all() and not np.isin(items, device.items).any())
    if not kept:
        raise UserError(
            f"pseudo_items.rule = {chosen.rule!r} chose no {count} different unrated items in ascending order",
            "correct its select; fedrecplus.testing.PseudoItemsContract says what is wrong",
        )
    return items.astype(np.int64)


def virtual_ratings(items: NDArray[np.int64], device: Device, broadcast: Broadcast, config: Config) -> Array:
    """What the client claims to have given pseudo items, on the scale where that is asked for."""
    filled = config.virtual_ratings
    predict = predictions(device, broadcast, config)
    ratings = filled.part.fill(items, device, broadcast, predict, filled.options)
    return put_on_scale(ratings, items, device, filled.options, broadcast.round)


def predictions(device: Device, broadcast: Broadcast, config: Config) -> Predict:
    """The client's own predictions, for rules that fill with them."""
    model = config.model

    def predict(items: NDArray[np.int64], steps: int = 0) -> Array:
        ratings: Array = model.part.predict(items, device, broadcast, model.options, steps)
        return ratings

    return predict
