"""Titles, years and genres from MovieLens' files of movies."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.catalogue import Catalogue, title_and_year
from fedrecplus.data.files.contents import as_utf8

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
