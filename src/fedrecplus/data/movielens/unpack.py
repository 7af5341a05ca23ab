"""A MovieLens set out of GroupLens' archive, the unpacked folder, or RecBole's wheel."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from fedrecplus.data.files.check import checked_ratings
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.text import read_text
from fedrecplus.data.movielens.catalogue import read_catalogue
from fedrecplus.data.movielens.sets import KnownSet
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError

Contents = Callable[[str], bytes | None]
"""The contents of the file of that name, wherever in the archive or folder it lies; None if it isn't there."""


def from_archive(path: Path, known: KnownSet) -> Ratings:
    """Read GroupLens' zip archive. The checksums within it are checked on the way."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _from_contents(lambda name: _member(archive, name), known, str(path))
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UserError(f"{path} is a damaged zip archive: {error}", "download it again") from None


def from_folder(folder: Path, known: KnownSet) -> Ratings:
    """Read an unpacked archive."""
    return _from_contents(lambda name: _file(folder, name), known, str(folder))


def from_wheel(path: Path, known: KnownSet) -> Ratings:
    """Read MovieLens-100K out of RecBole's wheel, where u.data has a header line and nothing else is changed."""
    with zipfile.ZipFile(path) as wheel:
        _, _, u_data = (_member(wheel, "ml-100k.inter") or b"").partition(b"\n")
        ratings = _ratings(u_data, known, f"{path}: ml-100k.inter")
        return _with_catalogue(ratings, _member(wheel, "ml-100k.item"), "ml-100k.item", str(path))


def _from_contents(contents: Contents, known: KnownSet, source: str) -> Ratings:
    layout = known.layout
    data = contents(layout.ratings_file)
    if not data:
        raise UserError(
            f"{source} holds no {layout.ratings_file}", f"put GroupLens' {known.name}.zip there, or what it holds"
        )
    ratings = _ratings(data, known, f"{source}: {layout.ratings_file}")
    return _with_catalogue(ratings, contents(layout.movies_file), layout.movies_file, source)


def _with_catalogue(ratings: Ratings, movies: bytes | None, file_name: str, source: str) -> Ratings:
    """Without the file of movies, which somebody who copies ratings about may lack, there is no catalogue."""
    if movies is None:
        return ratings
    try:
        return replace(ratings, catalogue=read_catalogue(movies, file_name, ratings.item_ids))
    except ValueError as error:
        raise UserError(f"{source}: {file_name} is damaged: {error}", "download the set again") from None


def _ratings(data: bytes, known: KnownSet, source: str) -> Ratings:
    options = FileOptions(user=1, item=2, rating=3, separator=known.layout.separator, scale=known.scale)
    ratings = checked_ratings(read_text(data, source, options), known.name, options)
    if difference := known.differs(ratings):
        raise UserError(
            f"{source} has {difference}",
            "download the set again, or give this one as a file of your own: --dataset PATH",
        )
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    if known.ratings_md5 and md5 != known.ratings_md5:
        raise UserError(f"{source} has md5 {md5}, as published it has {known.ratings_md5}", "download the set again")
    return ratings


def _member(archive: zipfile.ZipFile, name: str) -> bytes | None:
    members = (member for member in archive.namelist() if PurePosixPath(member).name == name)
    found = next(members, None)
    return None if found is None else archive.read(found)


def _file(folder: Path, name: str) -> bytes | None:
    found = next((path for path in (folder / name, *sorted(folder.glob(f"*/{name}"))) if path.is_file()), None)
    return None if found is None else found.read_bytes()
