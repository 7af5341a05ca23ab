"""Parsed sets, kept for the next time.

A set is a single ``.npz`` file: a zip archive, so a checksum stands beside each array and a file that was cut short or
changed doesn't pass. It is written beside its place under a name of its own and then renamed: another process sees the
old file, the new one, or none, whenever this one is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fedrecplus.data.ratings import Catalogue, Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError

_FORMAT = 1
_ARRAYS = ("indptr", "items", "codes", "client_ids", "item_ids")
_WORK = ".fetch-"
_LEFT_BEHIND_AFTER = 24 * 3600.0


def cache_folder() -> Path:
    """``$FEDRECPLUS_CACHE``, else ``fedrecplus`` in the place where this system keeps caches."""
    if chosen := os.environ.get("FEDRECPLUS_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", "~")).expanduser() / "fedrecplus"
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or usual).expanduser() / "fedrecplus"


def cached_path(name: str) -> Path:
    """Where a set is kept."""
    return cache_folder() / f"{name}.npz"


def load_cached(name: str) -> Ratings | None:
    """The kept set; None if there is none, or it is damaged or of another version: then it is fetched anew."""
    try:
        with cached_path(name).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            facts = json.loads(bytes(stored["facts"]))
            if facts["format"] != _FORMAT:
                return None
            arrays = {field: stored[field] for field in _ARRAYS}
            catalogue = Catalogue(
                titles=tuple(facts["titles"]),
                years=stored["years"],
                genres=stored["genres"],
                genre_names=tuple(facts["genre_names"]),
            )
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    return Ratings(name=name, scale=Scale.parse(facts["scale"]), catalogue=catalogue, **arrays)


def store(ratings: Ratings, work: Path) -> None:
    """Keep a set. ``work`` is a folder on the same disk as the cache."""
    catalogue = ratings.catalogue
    assert catalogue is not None, "MovieLens sets come with a catalogue"
    facts = {
        "format": _FORMAT,
        "scale": str(ratings.scale),
        "titles": catalogue.titles,
        "genre_names": catalogue.genre_names,
    }
    arrays = {field: getattr(ratings, field) for field in _ARRAYS}
    beside = work / f"{ratings.name}.npz"
    with beside.open("wb") as file:
        as_bytes = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        np.savez(file, facts=as_bytes, years=catalogue.years, genres=catalogue.genres, **arrays)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(cached_path(ratings.name))


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """A folder of our own in the cache, for downloads and half-written files."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        work = Path(tempfile.mkdtemp(prefix=_WORK, dir=cache))
    except OSError as error:
        raise UserError(
            f"the cache folder {cache} can't be written: {error.strerror}", "set FEDRECPLUS_CACHE to one that can"
        ) from None
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sweep(cache: Path) -> None:
    """Remove what killed processes left behind; a day old, so that no running one is disturbed."""
    for left in cache.glob(f"{_WORK}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND_AFTER:
                shutil.rmtree(left, ignore_errors=True)
