"""Ridge regressions of many clients at once: batches of small normal equations, by size class.

``parts/model/_public.py``, ``parts/model/reconstruction.py`` and ``parts/model/ials.py`` are the readable forms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, to_card
from fedrecplus.engines.cuda.ratings import CardRows, SizeClass, table_of_rows
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.fast.model.reconstruction import Prior
from fedrecplus.engines.fast.model.reconstruction import prior_of as fast_prior_of


class CardPrior(NamedTuple):
    """What is known of weights before any rating."""

    noise: float
    variance: Tensor
    """of each row of V"""
    first: int
    """the first factor's place among the weights, the baseline's left out"""
    mean: float
    """of the first factor"""

    @classmethod
    def of(cls, prior: Prior) -> CardPrior:
        """On the card."""
        return cls(float(prior.noise), to_card(prior.variance), int(prior.first), float(prior.mean))


class Posterior(NamedTuple):
    """Of the weights of some clients."""

    weights: Tensor
    """posterior means, with the baseline's 1 before them"""
    inverse_root: Tensor
    """L⁻¹ of the normal equations L Lᵀ"""


class Batch(NamedTuple):
    """Some clients of a size class, their rows as tables: a row per client."""

    clients: SizeClass
    numbers: Tensor
    """items, −1 beyond the last"""
    ratings: Tensor
    is_rated: Tensor
    rated: Tensor
    """how many rows of each client are rated"""
    summed: Tensor
    """how many go into the sums"""

    def used(self, solve_over: str) -> Tensor:
        """The rows that weights are solved over."""
        return self.numbers >= 0 if solve_over == "all" else self.is_rated


def batches(some: Round, columns: int) -> Iterator[Batch]:
    """The round's clients, so many at once as tables of ``columns`` leave memory for."""
    for each in some.classes:
        for part in parts_of(each, columns):
            numbers, ratings = table_of_rows(some.rows, part, pseudo=True)
            is_rated, rated, there = row_marks(some.rows, part)
            yield Batch(part, numbers, ratings, is_rated, rated, rated if some.how.rated_rows_only else there)


def prior_of(*facts: Any) -> CardPrior:
    """See ``engines/fast/model/reconstruction.py``."""
    return CardPrior.of(fast_prior_of(*facts))


def gathered(table: Tensor, numbers: Tensor) -> Tensor:
    """The table's rows of items, zero where there is no item."""
    rows = table[numbers.clamp(min=0).to(torch.int64)]
    return torch.where((numbers >= 0)[:, :, None], rows, 0.0)


def posterior(X: Tensor, numbers: Tensor, ratings: Tensor, used: Tensor, prior: CardPrior) -> Posterior:
    """Posterior weights over the ``used`` rows of X, which are gathered already. See ``reconstruction.posterior``."""
    A = torch.where(used[:, :, None], X[:, :, 1:], 0.0)
    targets = ratings - X[:, :, 0] - prior.mean * X[:, :, 1 + prior.first]
    doubt = torch.where(used, prior.variance[numbers.clamp(min=0).to(torch.int64)], 0.0).sum(1)
    ridge = torch.full((len(A), A.shape[2]), prior.noise, dtype=A.dtype, device=DEVICE)
    ridge[:, prior.first :] += doubt[:, None]
    gram = torch.bmm(A.transpose(1, 2), A)
    gram.diagonal(dim1=1, dim2=2).add_(ridge)
    moment = torch.bmm(A.transpose(1, 2), torch.where(used, targets, 0.0)[:, :, None])
    root = inverse_root(gram)
    weights = torch.ones((len(A), A.shape[2] + 1), dtype=A.dtype, device=DEVICE)
    weights[:, 1:] = solved(root, moment)
    weights[:, 1 + prior.first] += prior.mean
    return Posterior(weights, root)


def inverse_root(gram: Tensor) -> Tensor:
    """L⁻¹ of positive definite matrices L Lᵀ."""
    root = torch.linalg.cholesky(gram)
    unit = torch.eye(gram.shape[1], dtype=gram.dtype, device=DEVICE).expand_as(gram)
    inverse: Tensor = torch.linalg.solve_triangular(root, unit, upper=False)
    return inverse


def solved(root: Tensor, moment: Tensor) -> Tensor:
    """(L Lᵀ)⁻¹ m, from L⁻¹."""
    return torch.bmm(root.transpose(1, 2), torch.bmm(root, moment)).squeeze(2)


def expected_gradients(X: Tensor, ratings: Tensor, used: Tensor, found: Posterior, width: int, noise: float) -> Tensor:
    """e_j w_V − S_V x_j for rows of X, with the covariance S of weights solved over that row."""
    e = ratings - torch.bmm(X, found.weights[:, :, None]).squeeze(2)
    S = noise * torch.bmm(found.inverse_root.transpose(1, 2), found.inverse_root[:, :, -width:])
    doubt = torch.bmm(torch.where(used[:, :, None], X[:, :, 1:], 0.0), S)
    return e[:, :, None] * found.weights[:, None, -width:] - doubt


def parts_of(each: SizeClass, columns: int) -> list[SizeClass]:
    """A size class in runs that fit into memory, where a client has tables of so many columns."""
    return each.parts(NUMBERS_AT_ONCE // (max(each.rows, columns) * columns * 2))


def row_marks(rows: CardRows, some: SizeClass) -> tuple[Tensor, Tensor, Tensor]:
    """Which rows are rated, and how many rows are rated and are there."""
    rated = rows.ratings.counts(pseudo=False)[some.clients]
    there = rows.ratings.counts(pseudo=rows.has_pseudo)[some.clients]
    return torch.arange(some.rows, device=DEVICE)[None, :] < rated[:, None], rated, there


def wide(moved: Tensor, columns: int) -> Tensor:
    """Updates with zero columns up to those of the tables on the card."""
    if moved.shape[2] == columns:
        return moved.contiguous()
    table = torch.zeros((*moved.shape[:2], columns), dtype=moved.dtype, device=DEVICE)
    table[:, :, : moved.shape[2]] = moved
    return table
