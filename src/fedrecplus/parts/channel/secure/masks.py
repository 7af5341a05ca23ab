"""Masks: a key's stream of AES-256 in counter mode, added to or taken from a ring vector."""

from __future__ import annotations

import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from fedrecplus.arrays import Items
from fedrecplus.parts.channel._ring import RingLayout, RingVector

_room = threading.local()


def add_mask(vector: RingVector, key: bytes, layout: RingLayout, shared: Items | None, minus: bool = False) -> None:
    """Add the mask of a key over the rows that two clients share, or over all that the vector spans (None).

    A key makes one mask, so the counter starts at 0. The sections follow each other in the stream.
    """
    combine = np.subtract if minus else np.add
    count = len(vector.updates) if shared is None else len(shared)
    data = stream(key, layout.bytes_of(count))
    cut = count * layout.columns * layout.bits // 8
    updates = data[:cut].view(layout.dtype).reshape(count, layout.columns)
    weights = data[cut:].view("<u4")
    if shared is None or (vector.rows is not None and len(shared) == len(vector.rows)):
        combine(vector.updates, updates, out=vector.updates)
        combine(vector.weights, weights, out=vector.weights)
        return
    places = shared if vector.rows is None else np.searchsorted(vector.rows, shared)
    vector.updates[places] = combine(vector.updates[places], updates)
    vector.weights[places] = combine(vector.weights[places], weights[:count])
    tail = vector.weights[len(vector.updates) :]
    combine(tail, weights[count:], out=tail)


def stream(key: bytes, size: int) -> NDArray[np.uint8]:
    """So many bytes of a key's stream, in a buffer of this thread that the next call writes over."""
    if getattr(_room, "size", 0) < size:
        _room.zeros, _room.out, _room.size = bytes(size), np.empty(size + 16, dtype=np.uint8), size
    zeros = _room.zeros if _room.size == size else memoryview(_room.zeros)[:size]
    Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update_into(zeros, _room.out)
    return _room.out[:size]  # type: ignore[no-any-return]


def shared_rows(own: Items | None, other: Items | None) -> Items | None:
    """The rows that two vectors both span; None where both span the whole table."""
    if own is None or other is None:
        return own if other is None else other
    return np.intersect1d(own, other, assume_unique=True)
