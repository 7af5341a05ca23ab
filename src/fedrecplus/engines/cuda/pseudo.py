"""The pseudo rows of a round on the card: kept, or drawn and rated by kernels. See ``rounds/client.py``.

A rule without a CUDA kernel runs through the fast engine's, and what it finds is copied to the card.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray

from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.device import Decoys
from fedrecplus.engines.cuda.arrays import CardArray, on_host
from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, real_type, to_card
from fedrecplus.engines.cuda.drawing import client_key, key_parts, mix, to_unit
from fedrecplus.engines.cuda.ratings import CardRatings, CardRows, no_pseudo_rows
from fedrecplus.engines.cuda.registry import kernel_of, say_on_processor
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.cuda.tables import in_numpy
from fedrecplus.engines.fast import pseudo as on_processor
from fedrecplus.engines.fast.drawing import Drawing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, redraws, refreshes
from fedrecplus.parts.virtual_ratings import TIE
from fedrecplus.protocol import Broadcast

Clients = NDArray[np.int64]
_PLACES_AT_ONCE = 256


@dataclass(frozen=True)
class CardPseudo:
    """Pseudo items and virtual ratings of all clients, by place; as NumPy arrays for who asks."""

    rows: CardRows
    indptr: NDArray[np.int64]

    @functools.cached_property
    def items(self) -> NDArray[Any]:
        """Everybody's pseudo items."""
        return self.rows.pseudo_items.cpu().numpy()

    @functools.cached_property
    def ratings(self) -> NDArray[Any]:
        """Everybody's virtual ratings."""
        return self.rows.virtual_ratings.cpu().numpy()

    def of(self, client: int) -> Decoys:
        """One client's."""
        places = slice(self.indptr[client], self.indptr[client + 1])
        return Decoys(self.items[places].astype(np.int64), self.ratings[places].astype(np.float64))


def pseudo_rows(
    problem: Problem, private: PrivateState, message: Broadcast, cohort: Cohort, ratings: CardRatings
) -> tuple[PrivateState, CardPseudo]:
    """The pseudo rows of a cohort, and the private state with those that are kept."""
    indptr, places, clients = problem.pseudo_indptr, int(problem.pseudo_indptr[-1]), cohort.clients
    if places == 0:
        return private, CardPseudo(no_pseudo_rows(ratings), indptr)
    redraw, refresh = redraws(problem), refreshes(problem)
    newcomers = clients if redraw else clients[~private.drawn[clients]]
    to_rate = clients if refresh else newcomers
    kept: Any = None if redraw else to_card(private.pseudo_items)
    rows = CardRows(ratings, ratings.items[:0] if kept is None else kept, ratings.levels[:0])
    if len(newcomers):
        chosen = _part(cohort, newcomers, ratings)
        rows = rows._replace(pseudo_items=_select(Round(problem, private, message, rows, chosen), redraw, kept))
    virtual = torch.zeros(places, dtype=real_type(message.V.dtype), device=DEVICE)
    if not refresh:
        virtual = to_card(private.virtual_ratings).clone()
    if len(to_rate):
        _fill(Round(problem, private, message, rows, _part(cohort, to_rate, ratings)), refresh, virtual)
    rows = rows._replace(virtual_ratings=virtual)
    if not redraw and len(newcomers):
        drawn = private.drawn.copy()
        drawn[newcomers] = True
        private = replace(private, drawn=drawn, pseudo_items=_kept(rows.pseudo_items))
    if not refresh:
        private = replace(private, virtual_ratings=_kept(virtual))
    return private, CardPseudo(rows, indptr)


def _kept(tensor: Tensor) -> Any:
    return CardArray(tensor)


def _part(cohort: Cohort, clients: Clients, ratings: CardRatings) -> Cohort:
    """Some clients of a cohort, or all of them."""
    return cohort if len(clients) == len(cohort.clients) else Cohort.of(clients, ratings.counts(pseudo=True))


def _select(some: Round, redraw: bool, kept: Tensor | None) -> Tensor:
    """Everybody's pseudo items, with those of the round's clients drawn anew."""
    problem, chosen = some.problem, some.problem.config.pseudo_items
    found, key = kernel_of(chosen), some.message.round if redraw else 0
    places, dtype = int(problem.pseudo_indptr[-1]), problem.ratings.items.dtype
    if found is not None and found.fits(some):
        out = torch.zeros(places, dtype=torch.int32, device=DEVICE)
        if kept is not None:
            out = kept.to(torch.int32)
        found.select(some, chosen.settings, key, out)
        return out.to(some.rows.ratings.items.dtype)
    say_on_processor(chosen.kind, chosen.rule)
    items = np.zeros(places, dtype=dtype) if kept is None else kept.cpu().numpy().copy()
    on_processor.select(
        Drawing(problem, _on_host(some.private), in_numpy(some.message), key), some.cohort.clients, items
    )
    return to_card(items)


def _fill(some: Round, refresh: bool, out: Tensor) -> None:
    """Write the virtual ratings of the round's clients to their places."""
    problem, chosen = some.problem, some.problem.config.virtual_ratings
    found, key = kernel_of(chosen), some.message.round if refresh else 0
    if found is not None and found.fill(some, chosen.settings, key, out):
        put_on_scale(some, chosen.settings.rounding, key, out)
        return
    say_on_processor(chosen.kind, chosen.rule)
    ratings = out.cpu().numpy().copy()
    items = some.rows.pseudo_items.cpu().numpy()
    drawing = Drawing(problem, _on_host(some.private), in_numpy(some.message), key)
    on_processor.fill_ratings(drawing, some.cohort.clients, items, ratings)
    out.copy_(torch.from_numpy(ratings))


def put_on_scale(some: Round, rounding: str, key: int, out: Tensor) -> None:
    """Clip to the scale's ends and, if asked, round to its levels."""
    known = some.rows.ratings
    numbers = [STANDARD_LOW, STANDARD_HIGH, some.problem.ratings.scale.standard_step, TIE]
    facts = torch.tensor(numbers, dtype=torch.float64, device=DEVICE)
    which = ("none", "nearest", "stochastic").index(rounding)
    for each in some.classes:
        on_scale[(len(each.clients),)](
            each.clients, known.pseudo_indptr, some.rows.pseudo_items, known.secrets, facts, out,
            key_parts("rounding", key), BLOCK=min(each.rows, _PLACES_AT_ONCE), ROUNDING=which,
        )  # fmt: skip


def _on_host(private: PrivateState) -> PrivateState:
    return PrivateState(*(on_host(array) for array in vars(private).values()))


@kernel
def on_scale(
    clients: tl.tensor,
    pseudo_indptr: tl.tensor,
    pseudo_items: tl.tensor,
    secrets: tl.tensor,
    facts: tl.tensor,
    out: tl.tensor,
    parts: tl.tensor,
    BLOCK: tl.constexpr,
    ROUNDING: tl.constexpr,
) -> None:
    """Put a client's virtual ratings on the scale. See ``parts/virtual_ratings/_scale.py``."""
    client = tl.load(clients + tl.program_id(0))
    low, high = tl.load(facts), tl.load(facts + 1)
    step, tie = tl.load(facts + 2), tl.load(facts + 3)
    first, last = tl.load(pseudo_indptr + client), tl.load(pseudo_indptr + client + 1)
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)
        there = place < last
        value = tl.load(out + place, mask=there, other=0.0)
        exact = tl.minimum(tl.maximum(value.to(tl.float64), low), high)
        if ROUNDING > 0:
            level = (exact - low) / step
            below = tl.floor(level)
            threshold = tl.full((BLOCK,), 0.5, tl.float64)
            if ROUNDING == 2:
                key = client_key(secrets, client, parts)
                item = tl.load(pseudo_items + place, mask=there, other=0).to(tl.uint64)
                threshold = to_unit(mix(key, item))
            up = (level - below > threshold + tie).to(tl.float64)
            exact = tl.minimum(tl.maximum(low + step * (below + up), low), high)
        tl.store(out + place, exact.to(value.dtype), mask=there)
