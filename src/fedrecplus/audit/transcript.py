"""What an honest-but-curious server has, on disk: broadcasts, uploads, the public config and public item statistics.

A transcript is a folder of arrays that are mapped, not read: its size in memory doesn't grow with the rounds, but for
encoded items. Numbers are rounded to 32 bits, as on the wire. Nothing in it, and nothing that this module imports,
knows a client's ratings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.config.toml import dumps, loads
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast, PublicItems, Upload
from fedrecplus.similarity import unit_rows

Array = NDArray[np.float64]
T = TypeVar("T")
_CONFIG, _PUBLIC, _CROWD = "config.toml", "public.npz", "crowd.npz"
_BROADCAST = ("V", "last_step", "last_spread")


@dataclass(frozen=True)
class Sent:
    """One upload, as it came in."""

    round: int
    order: int
    """how many uploads the client had sent before; two with successive numbers have none between them"""
    upload: Upload


class Transcript:
    """A recorded transcript. Attacks read it; ``once`` keeps what several of them compute alike."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: Config = loads((folder / _CONFIG).read_text(encoding="utf-8"))
        public = np.load(folder / _PUBLIC)
        self.public = PublicItems(public["content"], public["popularity"], public["average"], public["years"])
        self.mean = float(public["mean"])
        self.step = float(public["step"])
        """distance between two ratings of the scale, in standard units"""
        self._kept: dict[Any, Any] = {}

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """Recorded rounds, ascending."""
        return tuple(sorted(int(path.name) for path in self.folder.iterdir() if path.is_dir()))

    @cached_property
    def clients(self) -> tuple[int, ...]:
        """Watched clients, ascending."""
        return tuple(int(c) for c in np.unique(np.concatenate([self._load(t, "clients") for t in self.rounds])))

    def broadcast(self, round_number: int) -> Broadcast:
        """What all clients were told in a recorded round, encoded items included."""
        return self.once(("broadcast", round_number), lambda: self._broadcast(round_number))

    def uploads(self, client: int) -> tuple[Sent, ...]:
        """A watched client's recorded uploads, by round."""
        found = (self._upload(t, client) for t in self.rounds)
        return tuple(sent for sent in found if sent is not None)

    @cached_property
    def crowd(self) -> dict[int, NDArray[np.int64]]:
        """Which rows clients uploaded in one round, watched or not: the server sees everybody."""
        with np.load(self.folder / _CROWD) as arrays:
            clients, ends, items = arrays["clients"], arrays["ends"], arrays["items"].astype(np.int64)
        return dict(zip(clients.tolist(), np.split(items, ends[:-1]), strict=True)) if len(clients) else {}

    def origin(self, client: int) -> int:
        """The real client behind a client: itself, unless an attacker invented it after the model of another."""
        return client

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """What ``compute`` gives, computed once for this transcript."""
        if key not in self._kept:
            self._kept[key] = compute()
        return cast(T, self._kept[key])

    def _load(self, round_number: int, name: str) -> NDArray[Any]:
        # opening a file anew for every client would take longer than the attacks
        return self.once(("file", round_number, name), lambda: self._open(round_number, name))

    def _open(self, round_number: int, name: str) -> NDArray[Any]:
        mode: Literal["r"] | None = "r" if name in ("items", "delta", "counts", *_BROADCAST) else None  # large: mapped
        path = _round_folder(self.folder, round_number) / f"{name}.npy"
        return cast(NDArray[Any], np.load(path, mmap_mode=mode))

    def _broadcast(self, round_number: int) -> Broadcast:
        V, step, spread = (np.asarray(self._load(round_number, name)) for name in _BROADCAST)
        encoder = part("encoders", self.config.pseudo_items.encoder)
        features = unit_rows(encoder.encode(V, self.public)) if self.config.pseudo_items.rule != "none" else V[:0]
        return Broadcast(round_number, V, step, spread, self.mean, features, self.public)

    def _upload(self, round_number: int, client: int) -> Sent | None:
        clients = self._load(round_number, "clients")
        place = int(np.searchsorted(clients, client))
        if place == len(clients) or clients[place] != client:
            return None
        ends = self._load(round_number, "ends")
        rows = slice(int(ends[place - 1]) if place else 0, int(ends[place]))
        weight = float(self._load(round_number, "weights")[place])
        counts = np.asarray(self._load(round_number, "counts")[rows], dtype=np.int64)
        upload = Upload(
            client,
            np.asarray(self._load(round_number, "items")[rows], dtype=np.int64),
            np.asarray(self._load(round_number, "delta")[rows], dtype=np.float64),
            None if np.isnan(weight) else weight,
            counts if bool(self._load(round_number, "denoised")[place]) else None,
        )
        return Sent(round_number, int(self._load(round_number, "orders")[place]), upload)


class Writer:
    """Writes a transcript, a round at a time."""

    def __init__(self, folder: Path, config: Config, public: PublicItems, mean: float, step: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        (folder / _CONFIG).write_text(dumps(config), encoding="utf-8")
        np.savez(
            folder / _PUBLIC,
            content=public.content,
            popularity=public.popularity,
            average=public.average,
            years=public.years,
            mean=mean,
            step=step,
        )

    def write_round(self, broadcast: Broadcast, uploads: Sequence[Upload], orders: Sequence[int]) -> None:
        """One round: what went out, and what came back from the watched clients, in ascending order of client."""
        columns = broadcast.V.shape[1]
        arrays: dict[str, NDArray[Any]] = {
            # back to 64 bits, in which attacks calculate: the files can then be used where they lie
            **{name: getattr(broadcast, name).astype(np.float32).astype(np.float64) for name in _BROADCAST},
            "clients": np.array([u.client for u in uploads], dtype=np.int64),
            "orders": np.array(orders, dtype=np.int64),
            "ends": np.cumsum([len(u.items) for u in uploads], dtype=np.int64),
            "items": np.concatenate([np.empty(0, np.int32), *(u.items.astype(np.int32) for u in uploads)]),
            "delta": np.concatenate(
                [np.empty((0, columns), np.float32), *(u.delta.astype(np.float32) for u in uploads)]
            ),
            "weights": np.array([np.nan if u.weight is None else u.weight for u in uploads]),
            "denoised": np.array([u.counts is not None for u in uploads], dtype=bool),
            "counts": np.concatenate([np.empty(0, np.int32), *(_counts(u).astype(np.int32) for u in uploads)]),
        }
        folder = _round_folder(self.folder, broadcast.round)
        folder.mkdir()
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)

    def write_crowd(self, item_sets: Mapping[int, NDArray[np.int64]]) -> None:
        """The rows of many clients' uploads in one round."""
        sets = [items.astype(np.int32) for items in item_sets.values()]
        np.savez(
            self.folder / _CROWD,
            clients=np.array(list(item_sets), dtype=np.int64),
            ends=np.cumsum([len(items) for items in sets], dtype=np.int64),
            items=np.concatenate([np.empty(0, np.int32), *sets]),
        )


def _counts(upload: Upload) -> NDArray[np.int64]:
    return upload.counts if upload.counts is not None else np.ones(len(upload.items), dtype=np.int64)


def _round_folder(folder: Path, round_number: int) -> Path:
    return folder / f"{round_number:06d}"
