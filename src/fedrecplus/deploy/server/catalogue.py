"""The catalogue that a server runs with: from ratings, and as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.encoders._catalogue import content_features
from fedrecplus.errors import UserError
from fedrecplus.protocol import PublicItems
from fedrecplus.simulation import item_averages, mean_rating
from fedrecplus.training.atomic import write_tensors
from fedrecplus.training.model_files import read_tensors

ITEMS = "items.safetensors"
FEWEST = 3
"""ratings that an average is published of: of one it would be the rating, of two each rater could tell the other's"""


def catalogue_of(ratings: Ratings) -> ItemCatalogue:
    """With all that a simulation holds public, averages of single ratings included: for a try on one machine."""
    items = ratings.catalogue
    content = content_features(items, ratings.item_count)
    years = np.zeros(0, np.int64) if items is None else items.years.astype(np.int64)
    public = PublicItems(content, ratings.item_counts(), item_averages(ratings), years)
    ids = tuple(str(name) for name in ratings.item_ids.tolist())
    return ItemCatalogue(ids, items.titles if items else (), ratings.scale, mean_rating(ratings), public)


def published_catalogue(ratings: Ratings, *, averages: bool = True) -> ItemCatalogue:
    """From a public data set, for people to have: with averages of ``FEWEST`` ratings and more, or without any.

    An item with fewer has the mean rating for its average. That mean, too, is over the other items alone: what it
    lacked of the shown averages would be the sum of those that are held back.
    """
    whole = catalogue_of(ratings)
    often = ratings.where(whole.public.popularity[ratings.items] >= FEWEST)
    average = item_averages(often) if averages else np.zeros(0)
    return replace(whole, mean=mean_rating(often), public=replace(whole.public, average=average))


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
