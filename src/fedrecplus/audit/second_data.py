"""Another data set of the same items, as an attacker may have one, and a deployment that it runs on it."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import numpy as np
from scipy.stats import spearmanr

from fedrecplus.arrays import Items
from fedrecplus.audit.recording import known_sets, record
from fedrecplus.audit.transcript import SecondData
from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.engines import prepare
from fedrecplus.errors import UserError
from fedrecplus.randomness import subkey

_LEAST_SHARED = 20
"""items of both data sets, of which there must be so many"""
_LEAST_AGREEMENT = 0.2
"""rank correlation of the popularity of items that are taken to be the same"""
_ROUNDS = 2
"""of the attacker's own deployment that it trains and takes notes of: sets of rows don't wait for V to be good"""


def joined(second: Ratings, target: Ratings) -> Ratings:
    """The second data set's ratings of the target's items, under the target's item numbers.

    Items are the same where their titles are, if both data sets have titles, else where their ids are.
    """
    names = [_names(one, titles=_titled(second) and _titled(target)) for one in (second, target)]
    place = {name: number for number, name in enumerate(names[1]) if name}
    to = np.array([place.get(name, -1) for name in names[0]], dtype=np.int64)
    if (shared := int((to >= 0).sum())) < _LEAST_SHARED:
        raise UserError(
            f"{second.name} and {target.name} have {shared} items in common, by "
            + ("title" if _titled(second) and _titled(target) else "id"),
            "give --knowing a file of ratings of the same items, with the same ids or titles",
        )
    _check_agreement(second, target, to)
    kept = second.where(to[second.items] >= 0)
    known = {"item_ids": target.item_ids, "catalogue": target.catalogue}
    return kept.renumbered(kept.client_of_rating, to[kept.items], **known)


def _check_agreement(second: Ratings, target: Ratings, to: Items) -> None:
    """Ids may be alike and name other things: then what is popular in one data set isn't in the other."""
    shared = to >= 0
    agreement = float(spearmanr(second.item_counts()[shared], target.item_counts()[to[shared]]).statistic)
    if not agreement > _LEAST_AGREEMENT:
        raise UserError(
            f"{second.name} and {target.name} seem to name different items by the same ids: their popularity has a rank"
            f" correlation of {agreement:.2f}",
            "give --knowing a file whose ids or titles are those of the attacked data set",
        )


def second_deployment(second: Ratings, config: Config, users: int) -> SecondData:
    """What the attacker's own deployment shows, with the truth behind it: it has all of that data set's ratings."""
    server = msgspec.structs.replace(config.server, rounds=_ROUNDS)
    own = replace(config, seed=subkey(config.seed, "shadow deployment") >> 2, server=server)
    problem = prepare(second, own)
    recording = record(problem, _ROUNDS, users)
    return SecondData(recording.transcript, known_sets(problem))


def _titled(ratings: Ratings) -> bool:
    return ratings.catalogue is not None and any(ratings.catalogue.titles)


def _names(ratings: Ratings, titles: bool) -> list[str]:
    if titles and ratings.catalogue is not None:
        return [re.sub(r"\W+", " ", title.lower()).strip() for title in ratings.catalogue.titles]
    return [str(name) for name in ratings.item_ids.tolist()]
