"""Where a MovieLens set comes from: the cache, the user's folder, GroupLens, and for ml-100k RecBole's wheel."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from filelock import FileLock

from fedrecplus.data.movielens.sets import RECBOLE, KnownSet
from fedrecplus.data.ratings import Catalogue, Progress, Ratings
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


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_CONNECT_SECONDS, _STALL_SECONDS, _PIP_SECONDS = 5, 60, 180
_RETRIES = 2
_WHEEL = "recbole==1.2.1"
_PIP = ("-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check")


class Unreachable(Exception):
    """A source that doesn't answer: the next one may."""


def load_known(known: KnownSet, progress: Progress | None = None) -> Ratings:
    """A set from the cache, else from the first source that has it, which then goes into the cache."""
    if cached := load_cached(known):
        return cached
    with work_folder(known.name) as work:
        if cached := load_cached(known):  # another process fetched it while this one waited
            return cached
        ratings = _from_sources(known, work, progress)
        if ratings.catalogue is not None:  # half a set isn't kept: the other half may come
            store(ratings, work)
    return ratings


def _from_sources(known: KnownSet, work: Path, progress: Progress | None) -> Ratings:
    from fedrecplus.data.movielens.read import read_set  # here: most runs find the set in the cache, and need no polars

    path = cached_path(known.name)
    state = "is damaged, of another version or not the whole set" if path.exists() else "is not there"
    tried = [f"cache: {path} {state}"]
    sources: list[Callable[[], Ratings]] = [
        lambda: read_set(_in_users_folder(known), known, known.layout),
        lambda: read_set(_from_grouplens(known.name, work, progress), known, known.layout),
    ]
    if known.name == "ml-100k":
        sources.append(lambda: read_set(_wheel(work), known, RECBOLE))
    for source in sources:
        try:
            return source()
        except Unreachable as reason:
            tried.append(str(reason))
    raise UserError(
        f"{known.name} could not be had. Tried:" + "".join(f"\n  - {attempt}" for attempt in tried),
        f"download {known.name}.zip from https://grouplens.org/datasets/movielens/ elsewhere, put it into a folder of "
        f"your choice and set FEDRECPLUS_DATA to that folder",
    )


def _in_users_folder(known: KnownSet) -> Path:
    """The archive in FEDRECPLUS_DATA, or what it unpacks to. An .md5 file beside the archive is checked."""
    chosen = os.environ.get("FEDRECPLUS_DATA")
    if not chosen:
        raise Unreachable("FEDRECPLUS_DATA is not set")
    archive = Path(chosen).expanduser() / f"{known.name}.zip"
    if archive.is_file():
        beside = archive.with_name(f"{archive.name}.md5")
        if beside.is_file():
            md5, expected = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest(), published_md5(beside)
            if md5 != expected:
                raise UserError(f"{archive} has md5 {md5}, {beside.name} says {expected}", "download it again")
        return archive
    for folder in (archive.with_suffix(""), archive.with_name(known.unpacks_to or known.name)):
        if folder.is_dir():
            return folder
    raise Unreachable(f"FEDRECPLUS_DATA: neither {archive} nor the folder {archive.with_suffix('')} is there")


def _from_grouplens(name: str, folder: Path, progress: Progress | None) -> Path:
    """Download an archive and check it against the md5 published beside it; FEDRECPLUS_GROUPLENS_URL names a mirror.

    Raises Unreachable, or UserError if what came is not what was published.
    """
    import pooch  # here: most runs find the set in the cache

    pooch.get_logger().setLevel("WARNING")
    base = (os.environ.get("FEDRECPLUS_GROUPLENS_URL") or _GROUPLENS).rstrip("/")
    url, sums = f"{base}/{name}.zip", pooch.HTTPDownloader(timeout=_CONNECT_SECONDS)
    bar = _Bar(f"{name}.zip", progress) if progress else False
    archive = pooch.HTTPDownloader(progressbar=bar, timeout=(_CONNECT_SECONDS, _STALL_SECONDS))
    try:
        md5 = published_md5(Path(pooch.retrieve(f"{url}.md5", None, f"{name}.zip.md5", folder, downloader=sums)))
        known = {f"{name}.zip": f"md5:{md5}"}
        source = pooch.create(path=folder, base_url=f"{base}/", registry=known, retry_if_failed=_RETRIES)
        return Path(source.fetch(f"{name}.zip", downloader=archive))
    except OSError as error:  # requests' errors are of this kind too
        raise Unreachable(f"{url}: {_reason(error)}") from None
    except ValueError as error:
        raise UserError(
            f"{url} is not the file that was published: {error}",
            "try again; if it happens again, the server or something on the way changes the file",
        ) from None


class _Bar:
    """What pooch asks of a progress bar."""

    def __init__(self, name: str, progress: Progress) -> None:
        self.name, self.progress, self.done, self.total = name, progress, 0, 0

    def update(self, size: int) -> None:
        self.done = min(self.done + size, self.total or self.done + size)
        self.progress(self.name, self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


def published_md5(path: Path) -> str:
    """The sum in an .md5 file, in BSD's or GNU's format."""
    digest = re.search(r"\b[0-9a-fA-F]{32}\b", path.read_text(encoding="ascii", errors="replace"))
    if digest is None:
        raise Unreachable(f"{path.name} holds no md5")
    return digest[0].lower()


def _reason(error: BaseException) -> str:
    """What is wrong, without the layers of libraries around it."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"answers {response.status_code} {response.reason}"
    while error.__context__:
        error = error.__context__
    return str(error) or type(error).__name__


def _wheel(folder: Path) -> Path:
    """Download RecBole's wheel with pip, which knows the user's index and proxy. Nothing is installed."""
    command = [sys.executable, *_PIP, "--dest", str(folder), _WHEEL]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"pip download {_WHEEL}: {error}") from None
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode != 0 or not wheels:
        raise Unreachable(f"pip download {_WHEEL}: {(finished.stderr.strip() or 'no wheel came').splitlines()[-1]}")
    return wheels[0]
