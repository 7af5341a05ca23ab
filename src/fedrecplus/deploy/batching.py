"""How ratings that come later enter uploads: in batches, together with their share of new pseudo items.

A row that appears in an upload by itself names a rating that was just given; a row that disappears names one that was
taken back, and a row whose rating jumps names itself as rated. So changes wait until there are enough of them:

- A new rating enters with the batch, beside at least as many new pseudo items as the settings give each rating.
- A rating taken back becomes a pseudo item with a virtual rating at the next batch: no row ever disappears.
- A changed rating is used in uploads from the next batch on.
- Where the value of a row moves by any of these, kept virtual ratings move with it, as many as each rating's share.

Recommendations use the person's ratings as they are at the moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.participation import Participant
from fedrecplus.device import Device, PseudoItems
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import keys, subkey
from fedrecplus.rounds.filling import pseudo_count, size_class
from fedrecplus.virtual_ratings._rounding import put_on_scale

Items = NDArray[np.int64]


@dataclass(frozen=True)
class Rated:
    """A person's ratings of items that the model knows, ascending."""

    items: Items
    ratings: NDArray[np.float64]
    """in standard units"""


def rated_of(ratings: dict[str, float], catalogue: ItemCatalogue) -> Rated:
    """A person's ratings, which are on the catalogue's scale, by item number; items that it lacks are left out."""
    known = sorted((catalogue.numbers[item], rating) for item, rating in ratings.items() if item in catalogue.numbers)
    items = np.array([number for number, _ in known], dtype=np.int64)
    values = np.array([rating for _, rating in known], dtype=np.float64)
    scale = catalogue.scale
    return Rated(items, scale.standardise(scale.values(scale.codes(values))))


def changes(one: Participant, rated: Rated) -> int:
    """How many ratings uploads don't know yet: new, changed and taken back."""
    before = dict(zip(one.items.tolist(), one.ratings.tolist(), strict=True))
    after = dict(zip(rated.items.tolist(), rated.ratings.tolist(), strict=True))
    return sum(before.get(item) != after.get(item) for item in before.keys() | after.keys())


def with_batch(
    one: Participant, rated: Rated, batch: int, device: Device, broadcast: Broadcast, settings: Config
) -> Participant:
    """The participant with all its changes, if they are enough for a batch; otherwise as it was.

    A person whose ratings are all taken back keeps what uploads have until ``forget`` or a new model.
    """
    if len(rated.items) == 0 or changes(one, rated) < batch:
        return one
    kept = one.kept
    if kept is not None:
        kept = _extended(one, kept, replace(device, items=rated.items, ratings=rated.ratings), broadcast, settings)
    return replace(one, items=rated.items, ratings=rated.ratings, kept=kept)


def _extended(
    one: Participant, kept: PseudoItems, device: Device, broadcast: Broadcast, settings: Config
) -> PseudoItems:
    """Kept pseudo items that weren't rated meanwhile, ratings taken back, and the newcomers' share of new ones."""
    stay = ~np.isin(kept.items, device.items)
    taken_back = np.setdiff1d(one.items, device.items)
    old_rows = np.union1d(one.items, kept.items)
    newcomers = ~np.isin(device.items, old_rows)
    pseudo = int(stay.sum()) + len(taken_back)
    count = _new_count(int(newcomers.sum()), len(device.items), pseudo, len(broadcast.V), settings)
    # chosen for the newcomers alone: company that suits the other ratings would tell the newcomers from it
    company = replace(device, items=device.items[newcomers], ratings=device.ratings[newcomers])
    fresh = np.union1d(_draw(count, old_rows, company if newcomers.any() else device, broadcast, settings), taken_back)
    ratings = np.empty(0)
    if len(fresh):
        ratings = _virtual_ratings(fresh, device, broadcast, settings)
    items = np.concatenate([kept.items[stay], fresh])
    order = np.argsort(items)
    extended = PseudoItems(items[order], np.concatenate([kept.ratings[stay], ratings])[order])
    if settings.virtual_ratings.refresh:
        return extended  # all of them move in every round
    moves = _moves(one, kept, device, extended)
    share = _share(len(one.items), settings)
    return _stirred(extended, kept.items[stay], int(np.ceil(share * moves)), device, broadcast, settings)


def _virtual_ratings(items: Items, device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    filled = part("virtual_ratings", settings.virtual_ratings.rule).fill(items, device, broadcast, settings)
    return put_on_scale(filled, items, device, settings, broadcast.round)


def _share(rated: int, settings: Config) -> float:
    """Pseudo items per rating."""
    how = settings.pseudo_items
    if how.rule == "none":
        return 0.0
    return how.ratio if how.count == 0 else how.count / max(rated, 1)


def _new_count(new: int, rated: int, pseudo: int, items: int, settings: Config) -> int:
    """New pseudo items of a batch: what the whole set lacks, and never less than the new ratings' own share."""
    how = settings.pseudo_items
    if how.rule == "none":
        return 0
    wanted = max(pseudo_count(rated, items, how) - pseudo, int(np.ceil(_share(rated - new, settings) * new)))
    if how.pad:
        wanted = size_class(rated + pseudo + wanted) - rated - pseudo
    return max(0, min(wanted, items - rated - pseudo))


def _draw(count: int, old_rows: Items, device: Device, broadcast: Broadcast, settings: Config) -> Items:
    """So many items by the settings' rule that are in no upload yet.

    What the rule gives first is taken first (the rest of a rated item's group, say): it is asked for more only by as
    many as are lacking. Of too many, a keyed choice.
    """
    rule, items = part("pseudo_items", settings.pseudo_items.rule), len(broadcast.V)
    fresh, asked = np.empty(0, dtype=np.int64), count
    while len(fresh) < count:
        chosen = rule.select(min(asked, items - len(device.items)), device, broadcast, settings)
        fresh = np.setdiff1d(chosen, np.union1d(old_rows, device.items))
        if asked >= items:
            break
        asked += max(count - len(fresh), 1)
    order = np.argsort(keys(subkey(device.secret, "batch", broadcast.round), fresh))
    return np.sort(fresh[order[:count]])


def _moves(one: Participant, kept: PseudoItems, device: Device, extended: PseudoItems) -> int:
    """Rows of earlier uploads that a change of the person's ratings gives another value."""
    before = dict(zip(kept.items.tolist(), kept.ratings.tolist(), strict=True))
    before |= dict(zip(one.items.tolist(), one.ratings.tolist(), strict=True))
    after = dict(zip(extended.items.tolist(), extended.ratings.tolist(), strict=True))
    after |= dict(zip(device.items.tolist(), device.ratings.tolist(), strict=True))
    return sum(after[item] != rating for item, rating in before.items())


def _stirred(
    pseudo: PseudoItems, old: Items, count: int, device: Device, broadcast: Broadcast, settings: Config
) -> PseudoItems:
    """The same pseudo items, so many of the old ones with another virtual rating.

    Ours: virtual ratings are kept, so a value that moves would name a row as rated, now or before. As many others move
    with it as the settings give each rating. They are drawn anew; where that gives the same value, it goes one step
    towards the middle of the scale.
    """
    other = replace(device, secret=subkey(device.secret, "stirred", broadcast.round))
    chosen = old[np.argsort(keys(other.secret, old))[:count]]
    if len(chosen) == 0:
        return pseudo
    places = np.searchsorted(pseudo.items, chosen)
    middle = (STANDARD_LOW + STANDARD_HIGH) / 2
    drawn, now = _virtual_ratings(chosen, other, broadcast, settings), pseudo.ratings[places]
    ratings = pseudo.ratings.copy()
    ratings[places] = np.where(drawn != now, drawn, now + np.where(now > middle, -device.step, device.step))
    return PseudoItems(pseudo.items, ratings)
