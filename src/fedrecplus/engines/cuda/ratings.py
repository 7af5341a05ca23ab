"""Everybody's ratings on the card, in narrow types, and a cohort's clients in size classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, to_card
from fedrecplus.engines.fast.rows import KernelRows
from fedrecplus.engines.problem import Problem

SMALLEST_CLASS = 16
"""rows of the smallest size class"""


class CardRatings(NamedTuple):
    """Everybody's ratings by client, and the places of everybody's pseudo items."""

    indptr: Tensor
    items: Tensor
    codes: Tensor
    levels: Tensor
    """code → rating on the standard scale"""
    pseudo_indptr: Tensor
    secrets: Tensor
    item_count: int
    ages: Tensor | None = None
    """how many of its client's choices came after each, where a model looks at it"""

    @property
    def in_order(self) -> CardRows:
        """Rows whose ratings are their ages: those are codes of a scale, too."""
        assert self.ages is not None
        oldest = int(self.ages.max()) if len(self.ages) else 0
        levels = torch.arange(oldest + 1, dtype=self.levels.dtype, device=DEVICE)
        return no_pseudo_rows(self._replace(codes=self.ages, levels=levels))

    @property
    def real(self) -> Any:
        """The precision of the tables."""
        return np.float64 if self.levels.dtype == torch.float64 else np.float32

    @staticmethod
    def levels_of(problem: Problem, dtype: Any) -> Tensor:
        """Code → rating, in a precision."""
        return to_card(problem.levels.astype(dtype))

    @classmethod
    def of(cls, problem: Problem, dtype: Any) -> CardRatings:
        """Copy them to the card."""
        ratings = problem.ratings
        return cls(
            to_card(ratings.indptr),
            to_card(ratings.items),
            to_card(ratings.codes),
            cls.levels_of(problem, dtype),
            to_card(problem.pseudo_indptr),
            to_card(problem.secrets),
            ratings.item_count,
            None if problem.ages is None else to_card(problem.ages),
        )

    def counts(self, pseudo: bool) -> Tensor:
        """Rows of each client: rated ones, and pseudo rows too."""
        rows = self.indptr.diff()
        return rows + self.pseudo_indptr.diff() if pseudo else rows


class CardRows(NamedTuple):
    """The rows of a round: everybody's rated rows and pseudo rows."""

    ratings: CardRatings
    pseudo_items: Tensor
    virtual_ratings: Tensor
    """empty, with the items, where there are no pseudo rows"""

    @property
    def has_pseudo(self) -> bool:
        """Whether there are pseudo rows."""
        return len(self.pseudo_items) > 0

    @property
    def for_kernels(self) -> KernelRows:
        """As kernels take them."""
        known = self.ratings
        rated = (known.indptr, known.items, known.codes, known.levels)
        return KernelRows(*rated, known.pseudo_indptr, self.pseudo_items, self.virtual_ratings)


class SizeClass(NamedTuple):
    """Clients with about as many rows: at most ``rows``, a power of two, and mostly more than half of that."""

    clients: Tensor
    rows: int

    def parts(self, most: int) -> list[SizeClass]:
        """The same clients in runs of at most so many."""
        most = max(1, most)
        firsts = range(0, len(self.clients), most)
        return [SizeClass(self.clients[first : first + most], self.rows) for first in firsts]


def size_classes(clients: NDArray[np.int64], counts: Tensor) -> list[SizeClass]:
    """A cohort by size class, instead of padding everybody to the longest; client numbers ascend in each."""
    chosen = to_card(clients)
    rows = counts[chosen].clamp(min=1)
    bits = torch.ceil(torch.log2(rows.to(torch.float64))).to(torch.int64)
    least = SMALLEST_CLASS.bit_length() - 1
    bits, order = torch.sort(bits.clamp(min=least), stable=True)
    sizes = torch.bincount(bits, minlength=1).tolist()
    classes, first = [], 0
    for bit, size in enumerate(sizes):
        if size:
            classes.append(SizeClass(chosen[order[first : first + size]], 1 << bit))
        first += size
    return classes


@kernel
def span_of(rows: tl.tuple, client: tl.tensor, PSEUDO: tl.constexpr) -> tl.tuple:
    """Where a client's rated rows begin, how many these are, where its pseudo rows begin, and how many all are."""
    first = tl.load(rows.indptr + client)
    rated = tl.load(rows.indptr + client + 1) - first
    pseudo_first = tl.load(rows.pseudo_indptr + client)
    n = rated
    if PSEUDO:
        n += tl.load(rows.pseudo_indptr + client + 1) - pseudo_first
    return first, rated, pseudo_first, n


@kernel
def rows_of(j: tl.tensor, rows: tl.tuple, span: tl.tuple, PSEUDO: tl.constexpr) -> tl.tuple:
    """Items and ratings of a client's rows j: rated ones first, then pseudo rows; item 0 beyond the last."""
    first, rated, pseudo_first, n = span
    is_rated = j < rated
    row = tl.load(rows.items + first + j, mask=is_rated, other=0).to(tl.int64)
    code = tl.load(rows.codes + first + j, mask=is_rated, other=0).to(tl.int64)
    rating = tl.load(rows.levels + code)
    if PSEUDO:
        is_pseudo = (j >= rated) & (j < n)
        place = pseudo_first + j - rated
        row += tl.load(rows.pseudo_items + place, mask=is_pseudo, other=0).to(tl.int64)
        rating = tl.where(is_pseudo, tl.load(rows.virtual_ratings + place, mask=is_pseudo, other=0.0), rating)
    return row, rating


@kernel
def write_rows(
    clients: tl.tensor,
    rows: tl.tuple,
    numbers: tl.tensor,
    ratings: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PSEUDO: tl.constexpr,
) -> None:
    """Items and ratings of clients as rows of two tables, −1 and 0 beyond the last."""
    at = tl.program_id(0).to(tl.int64)
    span = span_of(rows, tl.load(clients + at), PSEUDO)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row, rating = rows_of(j, rows, span, PSEUDO)
    present = j < span[3]
    tl.store(numbers + at * ROWS + j, tl.where(present, row, -1).to(tl.int32))
    tl.store(ratings + at * ROWS + j, tl.where(present, rating, 0.0))


def table_of_rows(rows: CardRows, size_class: SizeClass, pseudo: bool) -> tuple[Tensor, Tensor]:
    """Items (−1: none) and ratings of some clients, a row per client."""
    shape, block = (len(size_class.clients), size_class.rows), min(size_class.rows, 1024)
    numbers = torch.empty(shape, dtype=torch.int32, device=DEVICE)
    ratings = torch.empty(shape, dtype=rows.ratings.levels.dtype, device=DEVICE)
    write_rows[(shape[0], shape[1] // block)](
        size_class.clients, rows.for_kernels, numbers, ratings, ROWS=shape[1], BLOCK=block,
        PSEUDO=pseudo and rows.has_pseudo,
    )  # fmt: skip
    return numbers, ratings


def no_pseudo_rows(ratings: CardRatings) -> CardRows:
    """Everybody's rated rows alone."""
    return CardRows(ratings, ratings.items[:0], ratings.levels[:0])
