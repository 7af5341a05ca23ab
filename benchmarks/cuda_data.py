"""Made-up ratings for a card: drawn there, since 5·10⁸ of them take minutes on a processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedrecplus import data
from fedrecplus.data import Ratings, Scale
from fedrecplus.data.ratings import narrowest

_CLIENTS_AT_ONCE = 500_000
_TRUE_FACTORS = 4


def made(clients: int, per_client: int, items: int, skew: float = 0.0, held_out: int = 0) -> tuple[Ratings, Ratings]:
    """Ratings of a low-rank truth, so many per client, and one more of each of the first ``held_out`` clients.

    Items are drawn one from each stretch of popularity ranks, all alike, or with ``skew`` the first ones more often.
    """
    draws = torch.Generator(device="cuda").manual_seed(0)
    V = torch.randn((items, _TRUE_FACTORS), device="cuda", generator=draws) * 0.7
    by_rank = torch.randperm(items, device="cuda", generator=draws)
    parts: list[tuple[Any, Any]] = []
    tested: list[tuple[Any, Any]] = []
    for first in range(0, clients, _CLIENTS_AT_ONCE):
        count = min(_CLIENTS_AT_ONCE, clients - first)
        U = torch.randn((count, _TRUE_FACTORS), device="cuda", generator=draws)
        ranks = _ranks(count, per_client, items, skew, draws)
        parts.append(_rated(torch.sort(by_rank[ranks], dim=1).values, U, V, draws))
        if first < held_out:
            others = torch.randint(0, items, (count, 1), device="cuda", generator=draws)
            tested.append(_rated(others, U, V, draws))
    return _ratings(parts, clients, per_client, items), _ratings(tested, clients, 1, items)


def _ranks(count: int, per_client: int, items: int, skew: float, draws: torch.Generator) -> torch.Tensor:
    """Different ranks of each client, ascending."""
    places = torch.arange(per_client, device="cuda")
    spread = (places + torch.rand((count, per_client), device="cuda", generator=draws)) / per_client
    ranks = (items * spread ** (1.0 + skew)).to(torch.int64) - places
    return torch.minimum(torch.cummax(ranks, dim=1).values, torch.tensor(items - per_client, device="cuda")) + places


def _rated(items: torch.Tensor, U: torch.Tensor, V: torch.Tensor, draws: torch.Generator) -> tuple[Any, Any]:
    taste = torch.einsum("nd,njd->nj", U, V[items])
    noise = torch.randn(taste.shape, device="cuda", generator=draws)
    codes = torch.round(2.5 + taste + 0.8 * noise).clamp(0, 4).to(torch.uint8)
    return items.to(torch.int32).flatten().cpu().numpy(), codes.flatten().cpu().numpy()


def _ratings(parts: list[tuple[Any, Any]], clients: int, per_client: int, items: int) -> Ratings:
    numbers = np.concatenate([np.zeros(0, np.int32), *(part[0] for part in parts)]).astype(narrowest(items))
    codes = np.concatenate([np.zeros(0, np.uint8), *(part[1] for part in parts)])
    indptr = np.minimum(np.arange(clients + 1, dtype=np.int64) * per_client, len(numbers))
    return Ratings("made up", Scale(1.0, 5.0, 1.0), indptr, numbers, codes, np.arange(clients), np.arange(items))


def read(source: str) -> Ratings:
    """Ratings by name or file; an ``.npz`` of plain arrays, too, for a machine without a reader of tables."""
    if Path(source).suffix != ".npz":
        return data.load(source)
    with np.load(source) as stored:
        fields = ("indptr", "items", "codes", "client_ids", "item_ids")
        return Ratings(Path(source).stem, Scale(1.0, 5.0, 1.0), *(stored[name] for name in fields))
