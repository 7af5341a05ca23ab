"""Ratings by name or from a file."""

from __future__ import annotations

from pathlib import Path

from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.movielens.sets import KNOWN
from fedrecplus.data.progress import Progress
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.shards.manifest import ShardFolder, is_shard_folder
from fedrecplus.data.synthetic.options import SYNTHETIC, SyntheticOptions
from fedrecplus.errors import UserError, unknown_name


def load(name_or_path: str, *, options: FileOptions | None = None, progress: Progress | None = None) -> Ratings:
    """A known set, ``synthetic`` with or without options, or a file of the user's own.

    A name wins over a file of that name; ``./ml-100k`` is the file. ``options`` are for files alone.

    >>> load("synthetic:clients=100,items=30,ratings_per_client=5").clients
    100
    """
    name, _, settings = str(name_or_path).partition(":")
    if name in KNOWN or name == SYNTHETIC:
        if options not in (None, FileOptions()):
            raise UserError(f"{name_or_path} has its own columns and scale", "give file options with files only")
        if name == SYNTHETIC:
            from fedrecplus.data.synthetic.generate import generate  # here: it brings numba, which takes its time

            return generate(SyntheticOptions.parse(settings), progress)
        if not settings:
            from fedrecplus.data.movielens.fetch import load_known  # here: it brings polars

            return load_known(KNOWN[name], progress)
    path = Path(name_or_path).expanduser()
    if not path.exists() and not _looks_like_a_path(str(name_or_path)):
        raise unknown_name("data set", str(name_or_path), [*KNOWN, SYNTHETIC])
    if is_shard_folder(path):
        from fedrecplus.data.shards.read import read_all  # here: it brings polars

        return read_all(ShardFolder.read(path))
    from fedrecplus.data.files.read import read_file  # here: it brings polars, 30 MB that a device's node goes without

    return read_file(path, options)


def _looks_like_a_path(text: str) -> bool:
    return "/" in text or "\\" in text or bool(Path(text).suffix)
