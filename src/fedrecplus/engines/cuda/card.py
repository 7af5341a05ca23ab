"""The card: where tensors live, how kernels are compiled, and how much memory one step may take."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
from numpy.typing import NDArray

Tensor = torch.Tensor
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""kernels run in Triton's interpreter, on the processor: for tests where there is no card"""
DEVICE = torch.device("cpu" if INTERPRETED else "cuda")
NUMBERS_AT_ONCE = 1 << 27
"""numbers of the largest table that one step may make: half a gigabyte in 32 bits"""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile at first use for the card, by Triton."""
    return triton.jit(function)


def to_card(array: Any, dtype: Any = None) -> Tensor:
    """An array, or what ``CardArray`` holds, on the card."""
    tensor = getattr(array, "tensor", None)
    if tensor is None:
        tensor = torch.from_numpy(_writable(np.asarray(array))).to(DEVICE)
    return tensor if dtype is None else tensor.to(dtype)


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    """The array as torch takes it: contiguous, and a copy where it may not be written."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def real_type(dtype: Any) -> torch.dtype:
    """The tensor type of a NumPy precision."""
    return torch.float64 if np.dtype(dtype) == np.float64 else torch.float32


def power_of_two(number: int, least: int = 1) -> int:
    """The power of two that is as large or larger: kernels' blocks are powers of two."""
    return max(least, 1 << max(number - 1, 0).bit_length())


def padded(table: Tensor) -> Tensor:
    """The table with zero columns up to a power of two: rows then begin where vectors of 16 bytes do."""
    width = power_of_two(table.shape[1], 4)
    if width == table.shape[1]:
        return table.contiguous()
    wide = torch.zeros((len(table), width), dtype=table.dtype, device=table.device)
    wide[:, : table.shape[1]] = table
    return wide
