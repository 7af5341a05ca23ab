"""Ratings from a file into a store: one person's list, or a silo's table of many."""

from __future__ import annotations

import csv
from pathlib import Path

from fedrecplus.data import FileOptions, load
from fedrecplus.deploy.store import Store
from fedrecplus.errors import UserError


def import_own(store: Store, path: Path) -> int:
    """One person's ratings: a line each, item then rating, between commas, semicolons or tabs; a heading may be."""
    ratings: dict[str, float] = {}
    for number, fields in enumerate(_lines(path), 1):
        if not fields:
            continue
        try:
            ratings[fields[0].strip()] = float(fields[1])
        except (IndexError, ValueError):
            if number == 1 and len(fields) >= 2:
                continue
            raise UserError(f"{path}, line {number}: no item and rating", "write lines such as 1193,5") from None
    if not ratings:
        raise UserError(f"{path} holds no rating", "write lines such as 1193,5")
    store.rate(ratings)
    return len(ratings)


def import_many(store: Store, path: Path) -> tuple[int, int]:
    """A table of user, item and rating; returns how many persons and ratings it has."""
    ratings = load(str(path), options=FileOptions(scale=store.scale))
    numbers = store.add_persons([str(name) for name in ratings.client_ids.tolist()])
    persons = [numbers[str(name)] for name in ratings.client_ids.tolist()]
    items, values = [str(name) for name in ratings.item_ids.tolist()], ratings.values
    clients = ratings.client_of_rating
    store.rate_many([(persons[clients[at]], items[ratings.items[at]], float(values[at])) for at in range(len(ratings))])
    return len(persons), len(ratings)


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", "give a text file of item and rating") from None
    first = text.partition("\n")[0]
    separator = next((mark for mark in ("\t", ";", ",") if mark in first), ",")
    return list(csv.reader(text.splitlines(), delimiter=separator))
