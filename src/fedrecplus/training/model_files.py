"""A trained model as two files: what the server may know, and what the simulated clients keep to themselves.

``model.safetensors`` has V, the items, and what every client is told of them; in a run folder with exact figures of the
participants and the seed, so what is published is a coarser copy (``publishing``). ``clients.safetensors`` holds every
simulated client's weights and ratings. In a deployment each client's part would be on its own device; it is a file of
its own so that a model can be shared without it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fedrecplus.config import Config, dumps, loads
from fedrecplus.data import Scale
from fedrecplus.errors import UserError
from fedrecplus.files import write_tensors
from fedrecplus.parts import unpack
from fedrecplus.parts.model.sequence import Sequence, without_transitions
from fedrecplus.protocol import PublicItems
from fedrecplus.training.evaluation import ScoredBy

MODEL, CLIENTS = "model.safetensors", "clients.safetensors"
FORMAT = 2
"""of model files; 1 was that of fedrecplus 0.1"""
_DENSE = "dense."
_PUBLIC = ("content", "popularity", "average", "years")


@dataclass(frozen=True)
class SharedModel:
    """What the server and every client may know after training."""

    config: Config
    scale: Scale
    V: NDArray[Any]
    public: PublicItems
    item_ids: NDArray[Any]
    titles: tuple[str, ...]
    """no titles where the data has no catalogue"""
    genre_names: tuple[str, ...] = ()
    """of the first columns of ``public.content``; none where the data has no genres"""
    dense: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """the model's shared dense arrays beside each other; in a file each by its name"""

    @cached_property
    def X(self) -> NDArray[np.float64]:
        """The public columns that a person's weights are for: r̂ = w·X_i."""
        model = self.config.model
        X: NDArray[np.float64] = model.item_columns(self.V.astype(np.float64), self.public)
        return X

    @cached_property
    def factors(self) -> NDArray[np.float64]:
        """The rows that items are compared by: what is chosen soon after what says nothing of what they are like."""
        return self.without_transitions().V.astype(np.float64)

    def fold_in(self, items: NDArray[np.int64], ratings: NDArray[np.float64]) -> NDArray[np.float64]:
        """A person's weights from ratings in standard units, in closed form: all that a device needs is in here."""
        model = self.config.model
        w: NDArray[np.float64] = model.newcomer(self.X, self.dense.astype(np.float64), items, ratings, self.public)
        return w

    def without_transitions(self) -> SharedModel:
        """The model without its table of what is chosen soon after what; itself where it has none."""
        config = self.config
        if not isinstance(config.model, Sequence):
            return self
        return replace(self, config=without_transitions(config), V=self.V[:, : config.model.width].copy())

    @property
    def decay(self) -> float:
        """Choices over which the weight of a choice in lists falls to 1/e; 0: lists follow no order."""
        return max(self.config.model.recency, 0.0)

    def scores(self, w: NDArray[Any], items: Any = slice(None)) -> NDArray[np.float64]:
        """A person's scores of items: predictions in standard units, or what lists rank by, as the weights are."""
        if self.scored_by is not None:
            return self.scored_by.scores(self.X[items], w)
        scores: NDArray[np.float64] = self.X[items] @ w.astype(np.float64)
        return scores

    @property
    def scored_by(self) -> ScoredBy | None:
        """What scores where predictions are not X·w."""
        return ScoredBy.of(self.config.model, self.dense)

    def list_weights(
        self,
        w: NDArray[np.float64],
        items: NDArray[np.int64],
        ratings: NDArray[np.float64],
        recency: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64] | None:
        """A person's weights for lists, over the same columns; zeros without ratings, None where predicted ratings
        rank."""
        model = self.config.model
        if not self.config.model.scores_lists:
            return None
        if len(items) == 0:
            return np.zeros(len(w))
        z: NDArray[np.float64] = model.list_weights(w, self.X, items, ratings, self.public, recency)
        return z

    def weight_shares(
        self,
        items: NDArray[np.int64],
        ratings: NDArray[np.float64],
        by: str,
        recency: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Row k is what rating k adds to the weights that rank by ``by``."""
        model = self.config.model
        if by == "list" and model.scores_lists:
            return model.list_weight_shares(self.X, items, ratings, self.public, recency)
        return model.weight_shares(self.X, items, ratings, self.public)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Items that the model can say something about."""
        public = self.public
        return (public.popularity > 0) | (public.described & self.config.model.PREDICTS_COLD_ITEMS)

    @property
    def likes_alone(self) -> bool:
        """Whether every item's average is the same, so that it was trained on likes and its ratings mean nothing."""
        return len(self.public.average) > 1 and bool(np.ptp(self.public.average) < 1e-9)

    def write(self, folder: Path) -> None:
        """Write ``model.safetensors``."""
        public = self.public
        known = {name: getattr(public, name) for name in ("mean", "noise", "source", "epsilon")}
        facts = {"public": known, "scale": str(self.scale), "config": dumps(self.config), "format": FORMAT}
        facts |= {"genres": list(self.genre_names)} if self.genre_names else {}
        arrays = {name: getattr(public, name) for name in _PUBLIC}
        arrays |= {"V": self.V, **_ids("item_ids", self.item_ids), "titles": _as_bytes(list(self.titles))}
        leaves = unpack(self.config.model.tree(), self.dense, "dense")
        arrays |= {_DENSE + name: array for name, array in leaves.items()}
        # one entry: several would come in any order, and the same run should give the same bytes
        write_tensors(folder / MODEL, arrays, {"facts": json.dumps(facts)}, private=False)

    @classmethod
    def read(cls, folder: Path, allow: Collection[str] = ()) -> SharedModel:
        """Read ``model.safetensors``; parts that don't come with the package are imported only if ``allow`` names
        them."""
        arrays, metadata = read_tensors(folder / MODEL)
        facts = json.loads(metadata["facts"])
        if facts.get("format") != FORMAT:
            raise UserError(
                f"{folder / MODEL} is of another version of fedrecplus", "read it with fedrecplus 0.1, or train again"
            )
        tables: dict[str, Any] = {name: arrays[name] for name in _PUBLIC}
        known = facts.get("public") or {name: facts[name] for name in ("mean", "noise")}  # early versions of 0.2
        public = PublicItems(**tables, **known)
        config = loads(facts["config"], str(folder / MODEL), allow)
        return cls(
            config=config,
            scale=Scale.parse(facts["scale"]),
            V=arrays["V"],
            public=public,
            item_ids=_read_ids("item_ids", arrays),
            titles=tuple(_from_bytes(arrays["titles"])),
            genre_names=tuple(facts.get("genres", ())),
            dense=_read_dense(config, arrays, folder),
        )


@dataclass(frozen=True)
class PrivateParts:
    """What each simulated client knows: its weights and its ratings, by client number (CSR as in ``Ratings``)."""

    W: NDArray[Any]
    """weights for predictions"""
    indptr: NDArray[np.int64]
    items: NDArray[Any]
    codes: NDArray[Any]
    client_ids: NDArray[Any]
    Z: NDArray[Any] | None = None
    """weights for lists in which all ratings count alike; None where predicted ratings rank"""
    ages: NDArray[Any] | None = None
    """how many of its client's ratings came after each; None where their order isn't known"""

    def write(self, folder: Path) -> None:
        """Write ``clients.safetensors``."""
        arrays = {"W": self.W, "indptr": self.indptr, "items": self.items, "codes": self.codes}
        arrays |= {name: one for name, one in (("Z", self.Z), ("ages", self.ages)) if one is not None}
        write_tensors(folder / CLIENTS, {**arrays, **_ids("client_ids", self.client_ids)}, {}, private=True)

    @classmethod
    def read(cls, folder: Path) -> PrivateParts:
        """Read ``clients.safetensors``."""
        arrays, _ = read_tensors(folder / CLIENTS)
        client_ids = _read_ids("client_ids", arrays)
        rows = {name: arrays[name] for name in ("W", "indptr", "items", "codes")}
        return cls(**rows, client_ids=client_ids, Z=arrays.get("Z"), ages=arrays.get("ages"))


def nobodys_parts() -> PrivateParts:
    """Of clients who are elsewhere: on their devices, or in shards."""
    nobody = np.zeros(0, dtype=np.int64)
    return PrivateParts(np.zeros((0, 0)), np.zeros(1, dtype=np.int64), nobody, nobody, nobody)


def read_tensors(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """A safetensors file's arrays and its metadata."""
    try:
        with safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except FileNotFoundError:
        raise UserError(f"{path}: no such file", "give the folder of a finished run") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: {error}", "the file is damaged; train again with --overwrite") from None


def _read_dense(config: Config, arrays: dict[str, NDArray[Any]], folder: Path) -> NDArray[Any]:
    """The dense arrays beside each other, as the model's tree has them."""
    wanted = {_DENSE + name: leaf.shape for name, leaf in config.model.tree().items() if leaf.role == "dense"}
    if any(name not in arrays or arrays[name].shape != shape for name, shape in wanted.items()):
        raise UserError(
            f"{folder / MODEL}: model.rule={config.model.rule} has other dense arrays now than when it was trained",
            "read it with the version that wrote it, or train again with --overwrite",
        )
    return np.concatenate([np.zeros(0, arrays["V"].dtype), *(arrays[name].ravel() for name in wanted)])


def _ids(name: str, ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {name: ids.astype(np.int64)} if ids.dtype.kind in "iu" else {f"{name}_text": _as_bytes(ids.tolist())}


def _read_ids(name: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    return arrays[name] if name in arrays else np.array(_from_bytes(arrays[f"{name}_text"]), dtype=str)


def _as_bytes(texts: list[str]) -> NDArray[np.uint8]:
    # safetensors has no texts, and its header is too small for the ids of millions of clients
    return np.frombuffer(json.dumps([str(text) for text in texts]).encode(), dtype=np.uint8)


def _from_bytes(coded: NDArray[np.uint8]) -> list[str]:
    texts: list[str] = json.loads(coded.tobytes().decode())
    return texts
