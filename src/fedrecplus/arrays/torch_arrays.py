"""The primitives in torch, on whatever device the arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Tensor = torch.Tensor
_GOLDEN, _MIX_1, _MIX_2 = (
    number - (1 << 64) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""those of ``randomness.mix``, as signed numbers"""


def like(array: Any, other: Tensor) -> Tensor:
    """In the other's precision, on its device."""
    return torch.tensor(np.asarray(array), dtype=other.dtype, device=other.device)


def in_numpy(array: Tensor) -> Any:
    """On the processor."""
    return array.cpu().numpy()


def rows_of(table: Tensor, items: Tensor) -> Tensor:
    """See ``arrays.rows_of``."""
    if table.numel() == 0:
        return table.new_zeros((*items.shape, *table.shape[1:]))
    rows = table[items.clamp(min=0).to(torch.int64)]
    present = (items >= 0).reshape(*items.shape, *[1] * (table.dim() - 1))
    return torch.where(present, rows, torch.zeros((), dtype=table.dtype, device=table.device))


def greatest_rows(table: Tensor, items: Tensor, least: float) -> Tensor:
    """See ``arrays.greatest_rows``; one more row, of ``least``, is that of what is no item.

    By one kernel over all lines: a maximum for each of n columns in turn takes n times as many calls.
    """
    if items.shape[1] == 0:
        return table.new_full((len(items), table.shape[1]), least)
    rows = torch.cat([table, table.new_full((1, table.shape[1]), least)])
    places = torch.where(items >= 0, items, len(table)).to(torch.int64)
    return torch.nn.functional.embedding_bag(places, rows, mode="max")


def marked(items: Tensor, count: int) -> Tensor:
    """See ``arrays.marked``; one more place takes what is no item, and goes."""
    mask = torch.zeros((*items.shape[:-1], count + 1), dtype=torch.bool, device=items.device)
    places = torch.where(items >= 0, items, count).to(torch.int64)
    return mask.scatter_(-1, places, True)[..., :count]


def places_of(mask: Tensor, width: int) -> Tensor:
    """See ``arrays.places_of``."""
    *lines, place = torch.nonzero(mask, as_tuple=True)
    chosen = torch.full((*mask.shape[:-1], width), -1, device=mask.device)
    order = torch.cumsum(mask, -1)[mask] - 1
    chosen[(*lines, order)] = place
    return chosen


def cumulative(values: Tensor) -> Tensor:
    """Sums up to each place of the last axis."""
    return torch.cumsum(values, -1)


def mix(key: Tensor, indices: Any) -> Tensor:
    """See ``randomness.mix``: torch shifts no unsigned numbers, so these have a sign."""
    z = key + (torch.as_tensor(indices, dtype=torch.int64, device=key.device) + 1) * _GOLDEN
    for shift, factor in ((30, _MIX_1), (27, _MIX_2)):
        z = (z ^ _shifted(z, shift)) * factor
    return z ^ _shifted(z, 31)


def to_unit(keys: Tensor) -> Tensor:
    """See ``randomness.to_unit``."""
    return _shifted(keys, 11).to(torch.float64) * 2.0**-53


def _shifted(z: Tensor, by: int) -> Tensor:
    """The 64 bits shifted to the right, zeros coming in."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def solve(gram: Tensor, moment: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """See ``arrays.solve``; by L⁻¹ of G = L Lᵀ, which one triangular solve of many columns gives quickly."""
    root = torch.linalg.cholesky(gram)
    unit = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device).expand_as(gram)
    inverse_root = torch.linalg.solve_triangular(root, unit, upper=False)
    transposed = inverse_root.mT
    solution = (transposed @ (inverse_root @ moment[..., None]))[..., 0]
    return solution, transposed @ inverse_root[..., gram.shape[-1] - columns :]


def diagonal(matrices: Tensor) -> Tensor:
    """The diagonals of matrices, to be written to."""
    return matrices.diagonal(dim1=-2, dim2=-1)
