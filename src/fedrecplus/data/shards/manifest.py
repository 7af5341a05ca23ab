"""What a folder of shards holds: ``manifest.json``, which is written last, so that a folder with one is whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError
from fedrecplus.files import write_json

MANIFEST, ITEMS = "manifest.json", "items.parquet"
FORMAT = 1
_AGAIN = "write the shards again: fedrecplus data shard DATASET --out FOLDER --overwrite"
_MOST_NAMED = 3
"""folders of shards that an error points to"""


@dataclass(frozen=True)
class Shard:
    """Some clients, and the two files that they are in."""

    number: int
    first: int
    """number of its first client among all clients"""
    clients: int
    ratings: int
    ratings_file: str
    ratings_digest: str
    """SHA-256"""
    clients_file: str
    clients_digest: str


@dataclass(frozen=True)
class ShardFolder:
    """A whole set of ratings in shards, without the ratings."""

    path: Path
    name: str
    scale: Scale
    clients: int
    items: int
    ratings: int
    split: str
    """how ratings were put into folds; empty where they are in none"""
    folds: int
    seed: int
    """of the folds"""
    items_digest: str
    shards: tuple[Shard, ...]
    listed: bool = False
    """as ``Ratings.listed``"""
    scale_inferred: bool = False
    """as ``Ratings.scale_inferred``"""

    def write(self) -> None:
        """Write the manifest."""
        content = {"format": FORMAT, **asdict(self), "scale": str(self.scale)}
        del content["path"]
        write_json(self.path / MANIFEST, content)

    @classmethod
    def read(cls, path: str | Path) -> ShardFolder:
        """Read a manifest; the files that it names are looked at when they are used."""
        folder = Path(path).expanduser()
        file = folder / MANIFEST
        try:
            content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise UserError(f"{file} is of another version of fedrecplus", _AGAIN)
            shards = tuple(Shard(**one) for one in content.pop("shards"))
            scale = Scale.parse(content.pop("scale"))
            return cls(path=folder, scale=scale, shards=shards, **content)
        except (FileNotFoundError, NotADirectoryError):
            raise _no_shards(folder) from None
        except UserError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{file} can't be read: {error}", _AGAIN) from None

    def checked(self, name: str, digest: str) -> Path:
        """The path of one of its files, if it is there and as it was written."""
        file = self.path / name
        try:
            actual = digest_of(file)
        except FileNotFoundError:
            raise UserError(f"{file}: no such file, though {MANIFEST} names it", _AGAIN) from None
        except OSError as error:
            raise UserError(f"{file}: {error.strerror or error}", "see that it can be read") from None
        if actual != digest:
            raise UserError(f"{file} is not the file that {MANIFEST} describes: its SHA-256 differs", _AGAIN)
        return file

    def fingerprint(self) -> str:
        """A hash over all files, names aside."""
        digests = [self.items_digest, *(f"{one.ratings_digest} {one.clients_digest}" for one in self.shards)]
        return hashlib.sha256("\n".join([str(self.scale), *digests]).encode()).hexdigest()[:32]


def _no_shards(path: Path) -> UserError:
    """The error for a path without a manifest, with what is there instead, and the folders of shards nearby."""
    place = path if path.is_dir() else path.parent
    near = sorted(str(file.parent) for file in place.glob(f"*/{MANIFEST}")) if place.is_dir() else []
    there = f"there are shards in {', '.join(near[:_MOST_NAMED])}; or " if near else ""
    if path.is_file():
        out = f"{path.with_suffix('')}-shards"
        write = f"write its ratings as shards: fedrecplus data shard {path} --out {out} --shards 8"
        return UserError(f"{path} is a file, and shards are a folder", there + write)
    if not path.exists():
        write = f"write shards there: fedrecplus data shard DATASET --out {path} --shards 8"
        return UserError(f"there is no folder {path}", there + write)
    if any(path.glob("ratings-*.parquet")):
        again = f"fedrecplus data shard DATASET --out {path} --overwrite"
        return UserError(f"{path} holds no whole set of shards: it has no {MANIFEST}, which is written last", again)
    write = f"write shards into another folder: fedrecplus data shard DATASET --out {path}-shards --shards 8"
    return UserError(f"{path} holds no shards: it has no {MANIFEST}", there + write)


def digest_of(file: Path) -> str:
    """A file's SHA-256."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def is_shard_folder(path: str | Path) -> bool:
    """Whether a path is a folder that `data shard` has written."""
    return (Path(path).expanduser() / MANIFEST).is_file()
