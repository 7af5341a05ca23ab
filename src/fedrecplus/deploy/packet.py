"""A message as plain arrays and facts: what goes into Flower's records, and what a device keeps of its last answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

Fact = str | int | float


@dataclass(frozen=True)
class Packet:
    """Facts and arrays by name."""

    facts: dict[str, Fact]
    arrays: dict[str, NDArray[Any]]

    @property
    def size(self) -> int:
        """Bytes of the arrays."""
        return sum(table.nbytes for table in self.arrays.values())

    @property
    def digest(self) -> str:
        """A hash over all of it."""
        hashed = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode())
        for name, table in sorted(self.arrays.items()):
            hashed.update(f"{name} {table.dtype} {table.shape}".encode())
            hashed.update(np.ascontiguousarray(table).tobytes())
        return hashed.hexdigest()[:32]

    def to_bytes(self) -> bytes:
        """For a file or a column."""
        facts = np.frombuffer(json.dumps(self.facts).encode(), dtype=np.uint8)
        arrays = {name: np.ascontiguousarray(table) for name, table in self.arrays.items()}
        return bytes(save({**arrays, "facts": facts}))

    @classmethod
    def of_bytes(cls, content: bytes) -> Packet:
        """What ``to_bytes`` made."""
        arrays = load(content)
        facts = json.loads(arrays.pop("facts").tobytes().decode())
        return cls(facts, arrays)
