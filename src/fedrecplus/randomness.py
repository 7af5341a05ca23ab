"""Keyed, stateless randomness: the same key and indices give the same draw, in any order or batch.

A draw is a hash of a 64-bit key and some indices (client, round, item, …). Nothing is kept between draws, so a
client simulated alone, in a batch, on another thread or on its own device draws the same numbers.

The functions are written so that they run unchanged on NumPy ``uint64`` arrays and, compiled by numba, on scalars:
the simulator and the readable reference share one definition.

SplitMix64 is no cryptographic generator, and 64 bits can be searched: whoever sees draws may find the key. So a real
device's keys are 32 bytes of the operating system, and its draws keyed BLAKE2b. Same functions, other draws.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Key = int | bytes
"""of draws: 64 bits in a simulation, 32 bytes on a real device"""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_TO_UNIT = 2.0**-53


def mix(key: Any, index: Any) -> Any:
    """Hash a key with one index into a new key. After: Steele, Lea and Flood 2014 (SplitMix64)."""
    z = key + (index + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


def to_unit(key: Any) -> Any:
    """A key as a float64, uniform on [0, 1)."""
    return (key >> _S11) * _TO_UNIT


@overload
def subkey(key: int, *names: str | int) -> int: ...
@overload
def subkey(key: bytes, *names: str | int) -> bytes: ...
@overload
def subkey(key: Key, *names: str | int) -> Key: ...
def subkey(key: Key, *names: str | int) -> Key:
    """Derive a key for a purpose, so that draws for different purposes never coincide.

    >>> subkey(7, "pseudo-items", 3) == subkey(7, "pseudo-items", 3)
    True
    >>> subkey(7, "pseudo-items", 3) == subkey(7, "pseudo-items", 4)
    False
    """
    if isinstance(key, bytes):
        return hashlib.blake2b(json.dumps(names).encode(), key=key, digest_size=32).digest()
    state = _as_array(key)
    for name in names:
        state = mix(state, _as_array(purpose(name) if isinstance(name, str) else name))
    return int(state[0])


def subkeys(keys: Any, *names: str | int) -> NDArray[np.uint64]:
    """The subkey of one key, or of many (…), as (…, 1): what is drawn with it has another axis.

    >>> subkeys([7, 8], "pseudo-items", 3)[0] == subkey(7, "pseudo-items", 3)
    array([ True])
    """
    if isinstance(keys, bytes):  # a real device's: 64 bits of what follows from it one way
        return np.array([int.from_bytes(subkey(keys, *names)[:8], "big")], dtype=np.uint64)
    state: NDArray[np.uint64] = np.asarray(keys, dtype=np.uint64)[..., None]
    for name in names:
        state = mix(state, _as_array(purpose(name) if isinstance(name, str) else name))
    return state


def purpose(name: str) -> int:
    """The number that a purpose's name stands for in a key; larger than any client, item or round."""
    return zlib.crc32(name.encode()) | (1 << 40)


def keys(key: Key, indices: NDArray[Any]) -> NDArray[np.uint64]:
    """One key per index."""
    if isinstance(key, bytes):
        return _blake2(key, np.asarray(indices))
    hashed: NDArray[np.uint64] = mix(_as_array(key), np.asarray(indices).astype(np.uint64))
    return hashed


def uniform(key: Key, indices: NDArray[Any]) -> NDArray[np.float64]:
    """One draw from [0, 1) per index.

    >>> uniform(7, np.array([3, 5])).round(6).tolist() == uniform(7, np.array([5, 3])).round(6).tolist()[::-1]
    True
    """
    draws: NDArray[np.float64] = to_unit(keys(key, indices))
    return draws


def normal(key: Key, indices: NDArray[Any]) -> NDArray[np.float64]:
    """One standard normal draw per index. After: Box and Muller 1958."""
    first = uniform(subkey(key, "radius"), indices)
    second = uniform(subkey(key, "angle"), indices)
    return np.asarray(np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second), dtype=np.float64)


def new_secret() -> int:
    """256 bits from the operating system: what a real device's keys follow from, and nobody else knows."""
    return secrets.randbits(256)


def _blake2(key: bytes, indices: NDArray[Any]) -> NDArray[np.uint64]:
    """64 pseudorandom bits per index, by keyed BLAKE2b."""
    words = [hashlib.blake2b(cell.tobytes(), key=key, digest_size=8).digest() for cell in indices.astype("<u8").ravel()]
    return np.frombuffer(b"".join(words), dtype="<u8").reshape(indices.shape)


def _as_array(value: int) -> NDArray[np.uint64]:
    # an array of one, not a scalar: NumPy wraps arrays silently and warns for scalars
    return np.array([value & 0xFFFFFFFFFFFFFFFF], dtype=np.uint64)
