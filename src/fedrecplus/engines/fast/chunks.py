"""Clients in chunks, chunks on threads. What a chunk does never depends on how many threads there are."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNKS = 8
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""parameters of ``mallopt``"""
_ROWS_PER_CHUNK = 2_000
"""fewer rows than this are not worth a chunk of their own"""
_ITEMS_PER_ROW = 4
"""of a table; more than this are not worth one either"""


def chunks(clients: NDArray[np.int64], rows: NDArray[Any], items: int = 0) -> list[NDArray[np.int64]]:
    """The clients in runs with about the same number of rows; how many runs depends on rows and items alone.

    Each chunk sums on its own and the sums are added in order, so the result is the same for any number of threads.
    ``items`` are those of the table that a chunk sums to: where it has few rows for its size, clearing it and adding it
    up costs more than the rows.
    """
    if len(clients) == 0:
        return []
    before = np.cumsum(rows[clients])
    least = max(_ROWS_PER_CHUNK, items // _ITEMS_PER_ROW)
    count = int(np.clip(before[-1] // least, 1, _CHUNKS))
    cuts = np.searchsorted(before, before[-1] * np.arange(1, count) / count)
    return [part for part in np.split(clients, cuts) if len(part)]


@functools.cache
def keep_memory() -> None:
    """Keep what batches free for the next ones: glibc would give it back, and the system clear it, after every batch.

    Measured in rounds on ML-100K, one thread: ``fcf`` 57 ms against 101, ``fedrec+secure`` 81 against 100.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):  # another library than glibc has no such function
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_TRIM_THRESHOLD, 1 << 28)
        mallopt(_MMAP_THRESHOLD, 1 << 25)
