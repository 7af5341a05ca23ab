"""A MovieLens set from GroupLens' archive, the unpacked folder, or RecBole's wheel."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.read import checked_ratings
from fedrecplus.data.files.tables import read_table
from fedrecplus.data.movielens.movies import read_catalogue
from fedrecplus.data.movielens.sets import RECBOLE, KnownSet, Layout
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError


def read_set(path: Path, known: KnownSet, layout: Layout) -> Ratings:
    """Read an archive or a folder, and refuse what isn't the published set.

    Somebody who copies ratings about may lack the file of movies: then there is no catalogue.
    """
    try:
        data, movies = _contents(path, layout)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is a damaged zip archive: {error}", "download it again") from None
    if not data:
        remedy = f"put GroupLens' {known.name}.zip there, or what it holds"
        raise UserError(f"{path} holds no {layout.ratings_file}", remedy)
    if layout is RECBOLE:
        data = data.partition(b"\n")[2]
    ratings = _published_ratings(data, known, f"{path}: {layout.ratings_file}")
    if movies is None:
        return ratings
    try:
        return replace(ratings, catalogue=read_catalogue(movies, layout.movies_file, ratings.item_ids))
    except ValueError as error:
        raise UserError(f"{path}: {layout.movies_file} is damaged: {error}", "download the set again") from None


def _contents(path: Path, layout: Layout) -> tuple[bytes | None, bytes | None]:
    """The file of ratings and the file of movies, wherever they lie; None for one that isn't there."""
    names = (layout.ratings_file, layout.movies_file)
    if path.is_dir():
        files = {file.name: file for name in names for file in (*path.glob(f"*/{name}"), path / name) if file.is_file()}
        data, movies = (files[name].read_bytes() if name in files else None for name in names)
        return data, movies
    with zipfile.ZipFile(path) as archive:
        members = {PurePosixPath(member).name: member for member in archive.namelist()}
        data, movies = (archive.read(members[name]) if name in members else None for name in names)
        return data, movies


def _published_ratings(data: bytes, known: KnownSet, source: str) -> Ratings:
    options = FileOptions(1, 2, 3, known.layout.separator, known.scale, timestamp=4)
    ratings = checked_ratings(read_table(data, source, options), known.name, options)
    if difference := known.differs(ratings):
        remedy = "download the set again, or give this one as a file of your own: --dataset PATH"
        raise UserError(f"{source} has {difference}", remedy)
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if known.ratings_md5 not in ("", md5):
        raise UserError(f"{source} has md5 {md5}, as published it has {known.ratings_md5}", "download the set again")
    return replace(ratings, listed=True)  # GroupLens has published which films there are
