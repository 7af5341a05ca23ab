"""How ratings that come later enter uploads: in batches, together with their share of new pseudo items.

A row that appears, disappears or jumps by itself names a rating that was given, taken back or changed. So changes wait
until there are enough of them. New ratings come with their share of new pseudo items, a rating taken back becomes a
pseudo item, and where values move, kept virtual ratings move with them. Recommendations use ratings as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.device import Decoys, Device
from fedrecplus.parts.pseudo_items import in_wholes
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import keys, subkey
from fedrecplus.rounds import extra_rows, virtual_ratings

Items = NDArray[np.int64]
Values = NDArray[np.float64]


def rated_items(ratings: Mapping[str, float], catalogue: ItemCatalogue) -> tuple[Items, Values]:
    """A person's ratings of items that the model knows, by item number, ascending, in standard units."""
    known = sorted((catalogue.numbers[item], rating) for item, rating in ratings.items() if item in catalogue.numbers)
    items = np.array([number for number, _ in known], dtype=np.int64)
    values = np.array([rating for _, rating in known], dtype=np.float64)
    scale = catalogue.scale
    return items, scale.standardise(scale.values(scale.codes(values)))


def with_batch(
    client: Device, items: Items, ratings: Values, batch: int, broadcast: Broadcast, drawing: PublicItems,
    config: Config,
) -> Device:  # fmt: skip
    """The client with all its changes, if they are enough for a batch; otherwise as it was.

    New pseudo items are drawn by the figures ``drawing``, those of the catalogue that the first ones were drawn by. A
    person whose ratings are all taken back keeps what uploads have until ``forget``.
    """
    before, after = _by_item(client.items, client.ratings), _by_item(items, ratings)
    changes = sum(before.get(item) != after.get(item) for item in before.keys() | after.keys())
    if len(items) == 0 or changes < batch:
        return client
    changed = replace(client, items=items, ratings=ratings)
    if client.kept is None or not config.hides_rows:
        return changed
    return replace(changed, kept=_extended(client, changed, broadcast, drawing, config))


def _by_item(*items_and_ratings: NDArray[Any]) -> dict[int, float]:
    return dict(zip(*(column.tolist() for column in items_and_ratings), strict=True))


def _extended(before: Device, client: Device, broadcast: Broadcast, drawing: PublicItems, config: Config) -> Decoys:
    """Kept pseudo items that weren't rated meanwhile, ratings taken back, and the new ratings' share of new ones."""
    kept = client.kept
    assert kept is not None
    stay = ~np.isin(kept.items, client.items)
    taken_back = np.setdiff1d(before.items, client.items)
    old_rows = np.union1d(before.items, kept.items)
    new = ~np.isin(client.items, old_rows)
    pseudo = int(stay.sum()) + len(taken_back)
    count = _new_count(client.items[new], client.items, pseudo, drawing, config)
    # drawn for the new ratings alone: decoys that suit the other ratings would tell the new ones from them
    drawn_for = replace(client, items=client.items[new], ratings=client.ratings[new]) if new.any() else client
    fresh = _draw(count, old_rows, drawn_for, replace(broadcast, public=drawing), config)
    fresh = np.union1d(fresh, taken_back)
    items = np.concatenate([kept.items[stay], fresh])
    if config.virtual_ratings.settings.refresh:
        return Decoys(np.sort(items), np.zeros(len(items)))  # every round computes its own
    order, ratings = np.argsort(items), kept.ratings[stay]
    if len(fresh):
        ratings = np.concatenate([ratings, virtual_ratings(fresh, client, broadcast, config)])
    extended = Decoys(items[order], ratings[order])
    rows_before = _by_item(kept.items, kept.ratings) | _by_item(before.items, before.ratings)
    rows_after = _by_item(extended.items, extended.ratings) | _by_item(client.items, client.ratings)
    changed = sum(rows_after[item] != rating for item, rating in rows_before.items())
    count = int(np.ceil(config.pseudo_items.ratio * changed))
    return _moved(extended, kept.items[stay], count, client, broadcast, config)


def _new_count(new: Items, rated: Items, pseudo: int, drawing: PublicItems, config: Config) -> int:
    """New pseudo items of a batch: what one draw for all ratings would have more, or the new ratings' own share.

    Rows come in wholes (groups). A size class is filled where one draw for all ratings would fill it, and not by each
    batch anew: that would go up by a class, a quarter more rows, with every batch.
    """
    rule, items = config.pseudo_items, len(drawing.popularity)
    one_draw = rule.count(len(rated), items, extra_rows(rated, drawing, config))
    own_share = int(np.ceil(rule.ratio * len(new)))
    wanted = _in_wholes(max(one_draw - pseudo, own_share, 0), new, drawing, config)
    return max(0, min(wanted, items - len(rated) - pseudo))


def _in_wholes(count: int, rated: Items, drawing: PublicItems, config: Config) -> int:
    """So many pseudo items or a few more, so that together with the rated ones they make whole groups."""
    if count == 0 and len(rated) == 0:
        return 0
    extra = extra_rows(rated, drawing, config)
    return in_wholes(len(rated) + count - extra, config.pseudo_items.whole_rows) + extra - len(rated)


def _draw(count: int, old_rows: Items, client: Device, broadcast: Broadcast, config: Config) -> Items:
    """So many items by the settings' rule that are in no upload yet.

    What the rule gives first is taken first (the rest of a rated item's group, say): it is asked for more only by as
    many as are lacking. Of too many, a keyed choice; groups are never cut.
    """
    chosen, items = config.pseudo_items, len(broadcast.V)
    fresh, asked = np.empty(0, dtype=np.int64), _in_wholes(count, client.items, broadcast.public, config)
    while len(fresh) < count:
        given = chosen.select(min(asked, items - len(client.items)), client, broadcast)
        fresh = np.setdiff1d(given, np.union1d(old_rows, client.items))
        if asked >= items:
            break
        asked += in_wholes(max(count - len(fresh), 1), chosen.whole_rows)
    if chosen.whole_rows > 1:
        return fresh
    order = np.argsort(keys(subkey(client.secret, "batch", broadcast.round), fresh))
    return np.sort(fresh[order[:count]])


def _moved(pseudo: Decoys, old: Items, count: int, client: Device, broadcast: Broadcast, config: Config) -> Decoys:
    """The same pseudo items, so many of the old ones with another virtual rating.

    Ours: virtual ratings are kept, so a value that moves would name a row as rated, now or before. As many others move
    with it as the settings give each rating. They are drawn anew; where that gives the same value, it goes one step
    towards the middle of the scale.
    """
    other = replace(client, secret=subkey(client.secret, "stirred", broadcast.round))
    chosen = old[np.argsort(keys(other.secret, old))[:count]]
    if len(chosen) == 0:
        return pseudo
    places = np.searchsorted(pseudo.items, chosen)
    middle = (STANDARD_LOW + STANDARD_HIGH) / 2
    drawn, now = virtual_ratings(chosen, other, broadcast, config), pseudo.ratings[places]
    ratings = pseudo.ratings.copy()
    ratings[places] = np.where(drawn != now, drawn, now + np.where(now > middle, -client.step, client.step))
    return Decoys(pseudo.items, ratings)
