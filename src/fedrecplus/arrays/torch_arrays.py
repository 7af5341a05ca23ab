"""The primitives in torch, on whatever device the arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

Tensor = torch.Tensor


def like(array: Any, other: Tensor) -> Tensor:
    """In the other's precision, on its device."""
    return torch.tensor(np.asarray(array), dtype=other.dtype, device=other.device)


def in_numpy(array: Tensor) -> Any:
    """On the processor."""
    return array.cpu().numpy()


def rows_of(table: Tensor, items: Tensor) -> Tensor:
    """See ``arrays.rows_of``."""
    rows = table[items.clamp(min=0).to(torch.int64)]
    return torch.where((items >= 0)[..., None], rows, torch.zeros((), dtype=table.dtype, device=table.device))


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
