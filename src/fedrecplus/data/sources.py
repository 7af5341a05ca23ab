"""Ratings from whatever names or holds them: a set's name, a file, a frame, or ratings themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.load import load
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError

RatingsLike = Any
"""``Ratings``, a data set's name, a file's path, or a frame of pandas, polars or pyarrow"""


def as_ratings(source: RatingsLike, options: FileOptions | None = None, name: str = "frame") -> Ratings:
    """The ratings that something stands for.

    >>> import polars as pl
    >>> len(as_ratings(pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "rating": [3, 5]})))
    2
    """
    if isinstance(source, Ratings):
        return source
    if isinstance(source, str | Path):
        return load(str(source), options=options)
    from fedrecplus.data.frames import is_frame, ratings_of_frame  # here: most commands see no frame

    if not is_frame(source):
        raise UserError(
            f"a {type(source).__name__} is no set of ratings",
            "give a data set's name, a file, a frame of pandas, polars or pyarrow, or fr.Ratings",
        )
    return ratings_of_frame(source, options or FileOptions(), name)


def as_test(source: RatingsLike, training: Ratings, options: FileOptions | None = None) -> Ratings:
    """The same for test ratings: on the training's scale, and of as few users and items as there may be."""
    if isinstance(source, Ratings):
        return source
    # what describes the items was read with the training ratings
    nothing: dict[str, Any] = {"items": None, "listed": False, "title": None, "genres": None, "year": None}
    options = replace(options or FileOptions(), scale=training.scale, **nothing)
    if isinstance(source, str | Path):
        from fedrecplus.data.files.read import read_file  # here: it brings polars

        path = Path(source).expanduser()
        return read_file(path, options, few=True) if path.is_file() else load(str(source))
    from fedrecplus.data.frames import ratings_of_frame  # here: most commands see no frame

    return ratings_of_frame(source, options, "test", few=True)
