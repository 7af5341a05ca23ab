"""A message as plain facts and arrays: what Flower's records carry, and what a device keeps of its last reply."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

Facts = dict[str, str | int | float]


class Refusal(Exception):
    """A message that is not taken. ``kind`` is one word; ``blame`` says whether it counts against the sender."""

    def __init__(self, kind: str, detail: str = "", *, blame: bool = True) -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind, self.blame = kind, blame


@dataclass(frozen=True)
class Packet:
    """Facts and arrays by name."""

    facts: Facts
    arrays: dict[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(table.nbytes for table in self.arrays.values())

    @property
    def digest(self) -> str:
        """A hash over facts and arrays, their names, types and shapes."""
        hashed = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode())
        for name, table in sorted(self.arrays.items()):
            hashed.update(f"{name} {table.dtype} {table.shape}".encode())
            hashed.update(np.ascontiguousarray(table).tobytes())
        return hashed.hexdigest()[:32]

    def to_bytes(self) -> bytes:
        """For a file or a column of a database."""
        arrays = {name: np.ascontiguousarray(table) for name, table in self.arrays.items()}
        return bytes(save({**arrays, "facts": np.frombuffer(json.dumps(self.facts).encode(), dtype=np.uint8)}))

    @classmethod
    def of_bytes(cls, content: bytes) -> Packet:
        """What ``to_bytes`` made."""
        arrays = load(content)
        return cls(json.loads(arrays.pop("facts").tobytes().decode()), arrays)
