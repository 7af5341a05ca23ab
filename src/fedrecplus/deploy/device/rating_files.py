"""Ratings from a file into a store: one person's list, or a silo's table of many."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fedrecplus.data import FileOptions, load
from fedrecplus.deploy.device.store import Store
from fedrecplus.errors import UserError


def import_own(store: Store, path: Path) -> int:
    """One person's ratings: a line each, item then rating, between commas, semicolons or tabs; a heading may be."""
    ratings: dict[str, float] = {}
    for number, fields in enumerate(_lines(path), 1):
        if not fields:
            continue
        if len(fields) != 2:
            remedy = "give a table of user, item and rating with --silo" if len(fields) > 2 else "write such as 1193,5"
            raise UserError(f"{path}, line {number}: {len(fields)} columns instead of item and rating", remedy)
        item, text = fields[0].strip(), fields[1].strip()
        try:
            rating = float(text)
        except ValueError:
            if number == 1:
                continue
            raise UserError(f"{path}, line {number}: {text!r} is no rating", "write lines such as 1193,5") from None
        if not item:
            raise UserError(f"{path}, line {number}: no item", "write lines such as 1193,5")
        if item in ratings:
            raise UserError(f"{path}, line {number}: item {item!r} for the second time", "keep one of the lines")
        if not (np.isfinite(rating) and store.scale.holds(np.array([rating]))[0]):
            raise UserError(
                f"{path}, line {number}: {text} is not on the scale {store.scale}",
                "rate on the scale, or change it with `fedrecplus device scale`",
            )
        ratings[item] = rating
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
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "give a text file of item and rating") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text", "give a text file of item and rating, in UTF-8") from None
    first = text.partition("\n")[0]
    separator = next((mark for mark in ("\t", ";", ",") if mark in first), ",")
    return list(csv.reader(text.splitlines(), delimiter=separator))
