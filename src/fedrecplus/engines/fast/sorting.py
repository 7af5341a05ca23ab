"""Sorting inside kernels, for one type each: what numba brings is general, and takes a third of all compiling."""

from __future__ import annotations

from typing import Any

from fedrecplus.arrays.compiling import inner


@inner
def sort_by(keys: Any, values: Any, n: int) -> None:
    """Sort the first n keys, ascending, in place, and the values along with them. After: Williams 1964 (heapsort)."""
    for end in range(n // 2 - 1 + n, 0, -1):
        # first the heap is built from its middle up, then its top goes to the end, n - 1 times
        top, size = (end - n, n) if end >= n else (0, end)
        if end < n:
            keys[0], keys[end] = keys[end], keys[0]
            values[0], values[end] = values[end], values[0]
        key, value = keys[top], values[top]
        while 2 * top + 1 < size:
            child = 2 * top + 1
            if child + 1 < size and keys[child + 1] > keys[child]:
                child += 1
            if keys[child] <= key:
                break
            keys[top], values[top] = keys[child], values[child]
            top = child
        keys[top], values[top] = key, value


@inner
def part_at(values: Any, n: int, k: int) -> Any:
    """Reorder the first n values so that none before place k is greater than it and none after is smaller; returns it.

    After: Hoare 1961 (find).
    """
    low, high = 0, n - 1
    while low < high:
        middle, i, j = values[(low + high) // 2], low, high
        while i <= j:
            while values[i] < middle:
                i += 1
            while values[j] > middle:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@inner
def above(rising: Any, n: int, value: float) -> int:
    """The place of the first of n rising numbers that is greater than the value, n where none is."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if rising[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low
