"""The catalogue that a server runs with: from ratings, and as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from fedrecplus.files import write_tensors
from fedrecplus.training.model_files import read_tensors

ITEMS = "items.safetensors"
FEWEST = 3
"""ratings that an average is published of: of one it would be the rating, of two each rater could tell the other's"""


def catalogue_of(ratings: Ratings) -> ItemCatalogue:
    """With all that a simulation holds public, averages of single ratings included: for a try on one machine."""
    titles = ratings.catalogue.titles if ratings.catalogue else ()
    return ItemCatalogue(tuple(map(str, ratings.item_ids.tolist())), titles, ratings.scale, public_items(ratings))


def published_catalogue(ratings: Ratings, *, averages: bool = True) -> ItemCatalogue:
    """From a public data set, for people to have: with averages of ``FEWEST`` ratings and more, or without any.

    An item with fewer has the mean rating for its average. That mean, too, is over the other items alone: what it
    lacked of the shown averages would be the sum of those that are held back.
    """
    whole = catalogue_of(ratings)
    often = ratings.where(whole.public.popularity[ratings.items] >= FEWEST)
    average = often.item_means() if averages else np.zeros(0)
    return replace(whole, public=replace(whole.public, mean=often.mean(), average=average))


def write_catalogue(path: Path, catalogue: ItemCatalogue) -> None:
    """Write the file that a server runs with."""
    write_tensors(path, catalogue.arrays(), {}, private=False)


def read_catalogue(path: Path) -> ItemCatalogue:
    """Read the file that ``write_catalogue`` wrote."""
    arrays, _ = read_tensors(path)
    try:
        return ItemCatalogue.of_arrays(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path} is no item catalogue: {error}", "make one with `deploy items`") from None
