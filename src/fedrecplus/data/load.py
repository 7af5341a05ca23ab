"""Ratings from whatever names or holds them: a set's name, a file, a frame, or ratings themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.movielens.sets import KNOWN
from fedrecplus.data.ratings import Progress, Ratings
from fedrecplus.data.shards.manifest import ShardFolder, is_shard_folder
from fedrecplus.data.synthetic.truth import SYNTHETIC, SyntheticOptions
from fedrecplus.errors import UserError, unknown_name

RatingsLike = Any
"""``Ratings``, a data set's name, a file's path, a frame of pandas, polars or pyarrow, a sparse matrix of users ×
items, or rows of user, item, rating and maybe time: an array, or a list of tuples"""


def load(
    source: RatingsLike,
    *,
    options: FileOptions | None = None,
    progress: Progress | None = None,
    like: Ratings | None = None,
) -> Ratings:
    """A known set, ``synthetic`` with or without options, a file of the user's own, a frame, or ratings as they are.

    A name wins over a file of that name; ``./ml-100k`` is the file. ``options`` are for files and frames alone.
    ``like`` are training ratings, where test ratings are wanted: on their scale, of as few users and items as may be.

    >>> load("synthetic:clients=100,items=30,ratings_per_client=5").clients
    100
    """
    if isinstance(source, Ratings):
        return source
    if like is not None:  # what describes the items was read with the training ratings
        nothing: dict[str, Any] = {"items": None, "listed": False, "title": None, "genres": None, "year": None}
        options = replace(options or FileOptions(), scale=like.scale, **nothing)
    if not isinstance(source, str | Path):
        return _of_frame(source, options or FileOptions(), "frame" if like is None else "test", few=like is not None)
    path = Path(source).expanduser()
    if like is None or not path.is_file():
        named = _named(str(source), options if like is None else None, progress)
        if named is not None:
            return named
    from fedrecplus.data.files.read import read_file  # here: it brings polars, 30 MB that a device's node goes without

    return read_file(path, options, few=like is not None)


def from_frame(frame: Any, *, items: Any = None, name: str = "frame", **options: Any) -> Ratings:
    """Ratings from a frame of pandas, polars or pyarrow.

    Columns that aren't named are found by their usual names, as in files. ``items`` is a frame or a file with a row
    per item. ``options`` are those of ``FileOptions``: names of columns, ``scale``, ``duplicates`` and so on.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"who": ["ann", "bob"], "film": [7, 9], "stars": [4.5, 3.0]})
    >>> ratings = from_frame(frame, user="who", item="film", scale="0.5:5:0.5")
    >>> ratings.client_ids.tolist(), ratings.values.tolist()
    (['ann', 'bob'], [4.5, 3.0])
    """
    from fedrecplus.data.files.read import ratings_of_frame  # here: most commands see no frame

    given = FileOptions(**options, items=items if isinstance(items, str) else None)
    return ratings_of_frame(frame, given, name, items)


def _of_frame(frame: Any, options: FileOptions, name: str, *, few: bool) -> Ratings:
    from fedrecplus.data.files.read import ratings_of_frame  # here: most commands see no frame
    from fedrecplus.data.frames import tabular

    table = tabular(frame)
    if table is None:
        raise UserError(
            f"a {type(frame).__name__} is no set of ratings",
            "give a data set's name, a file, a frame of pandas, polars or pyarrow, a sparse matrix, rows of user, item "
            "and rating as an array or a list of tuples, or fr.Ratings",
        )
    return ratings_of_frame(table, options, name, few=few)


def _named(source: str, options: FileOptions | None, progress: Progress | None) -> Ratings | None:
    """A known set, a made-up one, or shards; None for what must be a file."""
    name, _, settings = source.partition(":")
    if name in KNOWN or name == SYNTHETIC:
        if options not in (None, FileOptions()):
            raise UserError(f"{source} has its own columns and scale", "give file options with files only")
        if name == SYNTHETIC:
            from fedrecplus.data.synthetic.generate import generate  # here: it brings numba, which takes its time

            return generate(SyntheticOptions.parse(settings), progress)
        if not settings:
            from fedrecplus.data.movielens.fetch import load_known  # here: it brings what fetches and unpacks

            return load_known(KNOWN[name], progress)
    path = Path(source).expanduser()
    if not path.exists() and not _looks_like_a_path(source):
        raise unknown_name("data set", source, [*KNOWN, SYNTHETIC])
    if is_shard_folder(path):
        from fedrecplus.data.shards.read import read_all  # here: it brings polars

        return read_all(ShardFolder.read(path))
    return None


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or "\\" in text or bool(Path(text).suffix)
