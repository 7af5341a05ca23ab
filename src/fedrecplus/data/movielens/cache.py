"""Parsed sets, kept for the next time: one ``.npz`` file each, whose checksums reveal damage."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from filelock import FileLock

from fedrecplus.data.catalogue import Catalogue
from fedrecplus.data.movielens.sets import KnownSet
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError

_FORMAT = 1
_ARRAYS = ("indptr", "items", "codes", "client_ids", "item_ids", "timestamps", "order")


def cache_folder() -> Path:
    """``$FEDRECPLUS_CACHE``, else where this system keeps caches."""
    chosen = os.environ.get("FEDRECPLUS_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("fedrecplus", appauthor=False)


def cached_path(name: str) -> Path:
    """Where a set is kept."""
    return cache_folder() / f"{name}.npz"


def load_cached(known: KnownSet) -> Ratings | None:
    """The kept set; None if there is none, or it is damaged, of another version or not the published one."""
    try:
        with cached_path(known.name).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            facts = json.loads(bytes(stored["facts"]))
            if facts["format"] != _FORMAT:
                return None
            titles, genre_names = tuple(facts["titles"]), tuple(facts["genre_names"])
            catalogue = Catalogue(titles, stored["years"], stored["genres"], genre_names)
            arrays = {field: stored[field] for field in _ARRAYS}
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    ratings = Ratings(name=known.name, scale=Scale.parse(facts["scale"]), catalogue=catalogue, listed=True, **arrays)
    return None if known.differs(ratings) else ratings


def store(ratings: Ratings, work: Path) -> None:
    """Keep a set: written in ``work``, then renamed, so that other processes see it whole or not at all."""
    catalogue = ratings.catalogue
    assert catalogue is not None, "MovieLens sets come with a catalogue"
    facts: dict[str, Any] = {"format": _FORMAT, "scale": str(ratings.scale)}
    facts |= {"titles": catalogue.titles, "genre_names": catalogue.genre_names}
    arrays = {field: getattr(ratings, field) for field in _ARRAYS}
    with (work / f"{ratings.name}.npz").open("wb") as file:
        as_bytes = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        np.savez(file, facts=as_bytes, years=catalogue.years, genres=catalogue.genres, **arrays)
        file.flush()
        os.fsync(file.fileno())
    (work / f"{ratings.name}.npz").replace(cached_path(ratings.name))


@contextlib.contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """A folder in the cache for a set's download. One process at a time has it; what a killed one left is removed."""
    work = cache_folder() / f".{name}"
    lock = FileLock(work.with_name(f".{name}.lock"))
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
    except OSError as error:
        raise UserError(
            f"the cache folder {work.parent} can't be written: {error.strerror}", "set FEDRECPLUS_CACHE to one that can"
        ) from None
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
        lock.release()
