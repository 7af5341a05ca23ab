"""Ratings over a list of items that was public before anybody rated: who rated what then changes no list."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.files.further import catalogue_of
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.tables import Table, as_ids, different_ids
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import DataWarning, UserError


def over_list(ratings: Ratings, table: Table | None, options: FileOptions) -> Ratings:
    """The ratings with exactly the items that a table lists; ratings of other items are left out, with a warning."""
    if table is None:
        raise UserError("a public list of items needs the list", "give it: --catalogue FILE")
    item_ids = different_ids(as_ids(table.columns["item"].str.strip_chars()))
    known, ids = ratings.item_ids, item_ids
    if (known.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        known, ids = known.astype(str), ids.astype(str)
    places = {name: place for place, name in enumerate(ids.tolist())}
    place_of = np.array([places.get(name, -1) for name in known.tolist()], dtype=np.int64)
    kept = place_of[ratings.items] >= 0
    _say_what_is_left_out(table, ratings, kept)
    ratings, catalogue = ratings.where(kept), catalogue_of(table, item_ids, options)
    known = {"item_ids": item_ids, "catalogue": catalogue, "listed": True}
    return ratings.renumbered(ratings.client_of_rating, place_of[ratings.items], **known)


def _say_what_is_left_out(table: Table, ratings: Ratings, kept: NDArray[np.bool_]) -> None:
    if not kept.any():
        raise UserError(f"{table.source} lists none of the rated items", "give a list whose item ids mean the same")
    if not kept.all():
        share = f"{np.count_nonzero(~kept):,} of {len(ratings):,} ratings"
        text = f"{table.source}: {share} are of items that it doesn't list, and are left out"
        warnings.warn(text, DataWarning, stacklevel=2)
