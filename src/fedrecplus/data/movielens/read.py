"""A MovieLens set from GroupLens' archive, the unpacked folder, or RecBole's wheel."""

from __future__ import annotations

import csv
import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.files.contents import as_utf8
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.read import checked_ratings
from fedrecplus.data.files.tables import read_table
from fedrecplus.data.movielens.sets import RECBOLE, KnownSet, Layout
from fedrecplus.data.ratings import Catalogue, Ratings, title_and_year
from fedrecplus.errors import UserError

_FLAGS = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""the genre flags at the end of a line of u.item, in order"""
_NO_GENRE = {"", "unknown", "(no genres listed)"}
_NO_TITLE = {"unknown", "unkonwn"}  # the second as RecBole spells it
Movie = tuple[str, int, set[str]]
"""title, year, genres"""


def read_catalogue(data: bytes, file_name: str, item_ids: NDArray[Any]) -> Catalogue:
    """The catalogue of some items; those that the file doesn't list are unknown. Raises ValueError if it is damaged."""
    text = as_utf8(data, file_name).decode()
    # not splitlines, which also splits at some characters that Latin-1 titles may hold
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if file_name == "u.item":
        movies = dict(_u_item(line.split("|")) for line in lines)
    elif file_name == "ml-100k.item":
        movies = dict(_recbole(line.split("\t")) for line in lines[1:])
    else:
        rows = csv.reader(lines[1:]) if file_name == "movies.csv" else (line.split("::") for line in lines)
        movies = dict(_titled(row) for row in rows)
    listed = [movies.get(int(item), ("", 0, set())) for item in item_ids]
    genre_names = tuple(sorted(set().union(*(genres for _, _, genres in listed)) - _NO_GENRE))
    return Catalogue(
        titles=tuple("" if title in _NO_TITLE else title for title, _, _ in listed),
        years=np.array([year for _, year, _ in listed], dtype=np.int16),
        genres=np.array([[name in genres for name in genre_names] for _, _, genres in listed], dtype=np.bool_),
        genre_names=genre_names,
    )


def _u_item(fields: Sequence[str]) -> tuple[int, Movie]:
    number, title, *rest = fields
    flags = zip(_FLAGS, rest[-len(_FLAGS) :], strict=False)
    return int(number), (*title_and_year(title), {genre for genre, flag in flags if flag == "1"})


def _recbole(fields: Sequence[str]) -> tuple[int, Movie]:
    number, title, year, genres = fields
    return int(number), (title, int(year) if year.isdigit() else 0, set(genres.split(" ")))


def _titled(fields: Sequence[str]) -> tuple[int, Movie]:
    number, title, genres = fields
    return int(number), (*title_and_year(title), set(genres.split("|")))


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
