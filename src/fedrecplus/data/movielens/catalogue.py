"""Titles, years and genres out of MovieLens' files of movies."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.files.contents import as_utf8
from fedrecplus.data.ratings import Catalogue

# the flags at the end of a line of u.item, in order
_FLAGS = (
    *(
        "unknown",
        "Action",
        "Adventure",
        "Animation",
        "Children's",
        "Comedy",
        "Crime",
        "Documentary",
        "Drama",
        "Fantasy",
    ),
    *("Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)
_NO_GENRE = {"", "unknown", "(no genres listed)"}
_NO_TITLE = {"unknown", "unkonwn"}  # the second as RecBole spells it
_YEAR = re.compile(r"\s*\((\d{4})\s*[-–]?\s*(?:\d{4})?\s*\)\s*(?:\(V\))?\s*$")  # (V): went straight to video


class Movie(NamedTuple):
    """A line of a file of movies."""

    id: int
    title: str
    year: int
    genres: tuple[str, ...]


def read_catalogue(data: bytes, file_name: str, item_ids: NDArray[Any]) -> Catalogue:
    """What a file of movies says of some items; those it doesn't mention are unknown."""
    read = {"u.item": _u_item, "movies.dat": _movies_dat, "movies.csv": _movies_csv, "ml-100k.item": _recbole_item}
    text = as_utf8(data, file_name).decode()
    movies = {movie.id: movie for movie in read[file_name](text)}
    listed = [movies.get(int(item), Movie(int(item), "", 0, ())) for item in item_ids]
    genre_names = tuple(sorted({genre for movie in listed for genre in movie.genres} - _NO_GENRE))
    return Catalogue(
        titles=tuple("" if movie.title in _NO_TITLE else movie.title for movie in listed),
        years=np.array([movie.year for movie in listed], dtype=np.int16),
        genres=np.array([[name in movie.genres for name in genre_names] for movie in listed], dtype=np.bool_),
        genre_names=genre_names,
    )


def _u_item(text: str) -> Iterator[Movie]:
    for line in _lines(text):
        number, title, *rest = line.split("|")
        flags = rest[-len(_FLAGS) :]
        genres = tuple(genre for genre, flag in zip(_FLAGS, flags, strict=False) if flag == "1")
        yield Movie(int(number), *title_and_year(title), genres)


def _movies_dat(text: str) -> Iterator[Movie]:
    for line in _lines(text):
        number, title, genres = line.split("::")
        yield Movie(int(number), *title_and_year(title), tuple(genres.split("|")))


def _movies_csv(text: str) -> Iterator[Movie]:
    for number, title, genres in list(csv.reader(io.StringIO(text, newline="")))[1:]:
        yield Movie(int(number), *title_and_year(title), tuple(genres.split("|")))


def _recbole_item(text: str) -> Iterator[Movie]:
    for line in _lines(text)[1:]:
        number, title, year, genres = line.split("\t")
        yield Movie(int(number), title, int(year) if year.isdigit() else 0, tuple(genres.split(" ")))


def _lines(text: str) -> list[str]:
    # not splitlines, which also splits at a few characters that Latin-1 titles may hold
    return [line.rstrip("\r") for line in text.split("\n") if line.strip()]


def title_and_year(text: str) -> tuple[str, int]:
    """Take the year off a title; 0 where there is none.

    >>> title_and_year("Toy Story (1995)"), title_and_year("Babylon 5")
    (('Toy Story', 1995), ('Babylon 5', 0))
    """
    year = _YEAR.search(text)
    return (text[: year.start()].strip(), int(year[1])) if year else (text.strip(), 0)
