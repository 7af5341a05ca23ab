"""The pseudo rows of a round on the card: kept, or chosen and rated by the rules' own files in torch."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING
from fedrecplus.device import Device
from fedrecplus.engines.cuda.arrays import CardArray
from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, real_type, to_card
from fedrecplus.engines.cuda.ratings import CardRatings, CardRows, no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Cohort, on_card
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import predictions_of, select_items, virtual_ratings

Clients = NDArray[np.int64]
_CELLS = 8
"""numbers of each item that choosing takes, about"""


@dataclass(frozen=True)
class CardPseudo:
    """Pseudo items and virtual ratings of all clients, by place; the items in NumPy for who asks."""

    rows: CardRows
    indptr: NDArray[np.int64]

    @functools.cached_property
    def items(self) -> NDArray[Any]:
        """Everybody's pseudo items."""
        return self.rows.pseudo_items.cpu().numpy()


def pseudo_rows(
    problem: Problem, private: PrivateState, message: Broadcast, cohort: Cohort, ratings: CardRatings
) -> tuple[PrivateState, CardPseudo]:
    """The pseudo rows of a cohort, and the private state with those that are kept."""
    indptr, places, clients = problem.pseudo_indptr, int(problem.pseudo_indptr[-1]), cohort.clients
    if places == 0:
        return private, CardPseudo(no_pseudo_rows(ratings), indptr)
    redraw, refresh = problem.config.redraws, problem.config.refreshes
    newcomers = clients if redraw else clients[~private.drawn[clients]]
    items = torch.zeros(places, dtype=torch.int32, device=DEVICE)  # torch writes to no unsigned numbers
    virtual = torch.zeros(places, dtype=real_type(message.V.dtype), device=DEVICE)
    items = items if redraw else to_card(private.pseudo_items).to(torch.int32)
    virtual = virtual if refresh else to_card(private.virtual_ratings).clone()
    _choose_and_rate(problem, private, message, _part(cohort, newcomers, ratings), ratings, items, virtual, True)
    if refresh and len(newcomers) < len(clients):
        others = _part(cohort, clients[private.drawn[clients]], ratings)
        _choose_and_rate(problem, private, message, others, ratings, items, virtual, False)
    items = items.to(ratings.items.dtype)
    kept: Any = (CardArray(items), CardArray(virtual))
    private = private.with_kept(problem.config, newcomers, *kept)
    return private, CardPseudo(CardRows(ratings, items, virtual), indptr)


def _part(cohort: Cohort, clients: Clients, ratings: CardRatings) -> Cohort:
    """Some clients of a cohort, or all of them."""
    return cohort if len(clients) == len(cohort.clients) else Cohort.of(clients, ratings.counts(pseudo=True))


def _choose_and_rate(
    problem: Problem,
    private: PrivateState,
    message: Broadcast,
    cohort: Cohort,
    ratings: CardRatings,
    items: Tensor,
    virtual: Tensor,
    choosing: bool,
) -> None:
    """Write a cohort's pseudo items, if they are chosen now, and their virtual ratings to their places."""
    message, U, step = on_card(message), to_card(private.U), problem.ratings.scale.standard_step
    rated, counts, secrets = no_pseudo_rows(ratings), ratings.pseudo_indptr.diff(), ratings.secrets.view(torch.int64)
    for size_class in cohort.classes:
        for part in size_class.parts(NUMBERS_AT_ONCE // max(_CELLS * ratings.item_count, size_class.rows**2)):
            rated_items, given = table_of_rows(rated, part, pseudo=False)
            held: Any = (part.clients, rated_items.to(torch.int64), given, step, U[part.clients], secrets[part.clients])
            device, count = Device(*held), counts[part.clients]
            row = torch.arange(int(count.max()), device=DEVICE)
            present = row < count[:, None]
            places = (ratings.pseudo_indptr[part.clients][:, None] + row)[present]
            if choosing:
                counted: Any = count
                chosen: Any = select_items(counted, device, message, problem.config)
                items[places] = chosen[present].to(items.dtype)
            else:
                chosen = torch.full(present.shape, NOTHING, device=DEVICE)
                chosen[present] = items[places].to(torch.int64)
            predict = predictions_of(device, message, problem.config)
            claimed: Any = virtual_ratings(chosen, device, message, problem.config, predict)
            virtual[places] = claimed[present].to(virtual.dtype)
