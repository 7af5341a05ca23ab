"""The pseudo rows of a round, for all its clients: kept, or drawn and rated by kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.fast import filling, grouping, neighbours, selection
from fedrecplus.fast.neighbours import likeness_table, neighbour_lists, weight_table
from fedrecplus.fast.threads import chunks, on_threads
from fedrecplus.gradients import step_sizes, unevenness
from fedrecplus.model import prior
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast
from fedrecplus.pseudo_items import grouped, matched
from fedrecplus.pseudo_items.popular import PATIENCE, cumulative
from fedrecplus.randomness import purpose, subkey
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.simulation.reference import device_of, message_of
from fedrecplus.virtual_ratings.drawn import TEMPERATURE, WIDTH
from fedrecplus.virtual_ratings.plausible import SHARE


@dataclass(frozen=True)
class PseudoRows:
    """Pseudo items and virtual ratings of all clients, by place."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    ratings: NDArray[Any]
    levels: NDArray[Any]
    """level number → rating on the standard scale"""


def pseudo_rows(
    problem: Problem, state: SimulationState, clients: NDArray[np.int64]
) -> tuple[SimulationState, PseudoRows]:
    """The pseudo rows of these clients, and the state with those that are kept. See ``rounds/filling.py``."""
    dtype = state.server.V.dtype
    levels = _levels(problem).astype(dtype)
    places = int(problem.pseudo_indptr[-1])
    if places == 0:
        nothing = np.zeros(0, dtype=problem.ratings.items.dtype)
        return state, PseudoRows(problem.pseudo_indptr, nothing, np.zeros(0, dtype=dtype), levels)
    redraw, refresh = problem.config.pseudo_items.redraw, problem.config.virtual_ratings.refresh
    newcomers = clients if redraw else clients[~state.drawn[clients]]
    items = np.zeros(places, dtype=problem.ratings.items.dtype) if redraw else state.pseudo_items
    ratings = np.zeros(places, dtype=dtype) if refresh else state.virtual_ratings
    to_rate = clients if refresh else newcomers
    message = _message(problem, state, len(newcomers) > 0, len(to_rate) > 0)
    if len(newcomers):
        items = items if redraw else items.copy()
        _select(problem, state, message, newcomers, items)
    if len(to_rate):
        ratings = ratings if refresh else ratings.copy()
        _fill(problem, state, message, to_rate, items, ratings, levels)
    if not redraw and len(newcomers):
        drawn = state.drawn.copy()
        drawn[newcomers] = True
        state = replace(state, drawn=drawn, pseudo_items=items)
    if not refresh:
        state = replace(state, virtual_ratings=ratings)
    return state, PseudoRows(problem.pseudo_indptr, items, ratings, levels)


def _message(problem: Problem, state: SimulationState, selecting: bool, rating: bool) -> Broadcast:
    """The round's broadcast, with encoded items only where a part looks at them this round."""
    by_features = (selecting and problem.selects_by_features) or (rating and problem.rates_by_features)
    return message_of(problem, state, with_features=by_features)


def _levels(problem: Problem) -> NDArray[np.float64]:
    scale = problem.ratings.scale
    return scale.standardise(scale.values(np.arange(scale.levels)))


def _select(
    problem: Problem, state: SimulationState, message: Broadcast, clients: NDArray[np.int64], out: NDArray[Any]
) -> None:
    ratings, rule = problem.ratings, problem.config.pseudo_items.rule
    count = ratings.item_count
    key = np.uint64(subkey(problem.config.seed, "secrets"))
    round_key = np.uint64(state.server.round if problem.config.pseudo_items.redraw else 0)
    unsure = np.zeros(ratings.clients, dtype=bool)
    if rule in ("random", "popular"):
        shares = cumulative(problem.public.popularity) if rule == "popular" else np.zeros(0)

        def work(some: NDArray[np.int64]) -> None:
            selection.draw(
                some, ratings.indptr, ratings.items, problem.pseudo_indptr, shares, PATIENCE,
                key, np.uint64(purpose("pseudo-items")), round_key, count, out,
            )  # fmt: skip
    elif rule == "similar" and count <= neighbours.LARGEST_TABLE:
        table = likeness_table(message.features)

        def work(some: NDArray[np.int64]) -> None:
            selection.top_similar(some, ratings.indptr, ratings.items, problem.pseudo_indptr, table, count, out)
    elif rule == "similar":
        lists = neighbour_lists(message.features)

        def work(some: NDArray[np.int64]) -> None:
            selection.merge_neighbours(
                some, ratings.indptr, ratings.items, problem.pseudo_indptr,
                lists.items, lists.likeness, count, out, unsure,
            )  # fmt: skip
    elif rule == "matched":
        ranking = matched.by_popularity(problem.public.popularity)
        place = np.argsort(ranking, kind="stable")
        near = neighbours.near_in_rank(message.features, ranking, 2 * matched.WINDOW)

        def work(some: NDArray[np.int64]) -> None:
            selection.match(
                some, ratings.indptr, ratings.items, problem.pseudo_indptr, ranking, place, near, message.features,
                matched.WINDOW, matched.CHANCE, key, np.uint64(purpose("pseudo-items")), round_key, out,
            )  # fmt: skip
    elif rule == "grouped":
        groups = grouping.public_groups(problem.public, grouped.group_size(problem.config.pseudo_items))

        def work(some: NDArray[np.int64]) -> None:
            grouping.whole_groups(
                some, ratings.indptr, ratings.items, problem.pseudo_indptr, groups.of_item, groups.members,
                groups.starts, groups.content, groups.years, grouped.nearby(problem.public), grouped.SAME_YEAR,
                grouped.CHANCE, key, np.uint64(purpose("pseudo-items")), round_key, out,
            )  # fmt: skip
    else:

        def work(some: NDArray[np.int64]) -> None:
            unsure[some] = True

    def choose(some: NDArray[np.int64]) -> None:
        work(some)
        if not problem.config.pseudo_items.redraw:  # kept sets are compared; sets for one round need no order
            selection.put_in_order(some, problem.pseudo_indptr, out)

    on_threads(choose, chunks(clients, np.diff(ratings.indptr)))
    for client in clients[unsure[clients]]:
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        device = device_of(problem, state, int(client))
        chosen = part("pseudo_items", rule).select(places.stop - places.start, device, message, problem.config)
        out[places] = chosen


def _fill(
    problem: Problem,
    state: SimulationState,
    message: Broadcast,
    clients: NDArray[np.int64],
    items: NDArray[Any],
    out: NDArray[Any],
    levels: NDArray[Any],
) -> None:
    config, ratings, V = problem.config, problem.ratings, state.server.V
    rule, real, indptr = config.virtual_ratings.rule, V.dtype.type, problem.pseudo_indptr
    if rule == "hybrid":
        rule = "user-average" if state.server.round < config.virtual_ratings.predict_after else "hybrid"
    sizes = step_sizes(config, state.server.round)
    U_prior = prior(config.model, problem.mean)[0].astype(V.dtype)
    uneven = unevenness(V, config.model.factors) if sizes.contrast != 1.0 and rule == "hybrid" else np.zeros(0)
    averages = problem.public.averages(len(V))
    rated = np.diff(ratings.indptr)
    table = np.zeros((0, 0))
    if rule in ("nearest", "weighted"):
        table = likeness_table(message.features)
    elif rule == "drawn":
        table = weight_table(message.features, averages, int((rated * np.diff(indptr))[clients].sum()))
    stochastic = config.virtual_ratings.rounding == "stochastic"
    key = np.uint64(subkey(config.seed, "secrets"))
    round_key = np.uint64(state.server.round if config.virtual_ratings.refresh else 0)

    def work(some: NDArray[np.int64]) -> None:
        if rule == "user-average":
            filling.user_average(some, ratings.indptr, ratings.codes, levels, indptr, out)
        elif rule == "predicted":
            filling.predicted(some, indptr, items, state.U, V, real(problem.mean), out)
        elif rule == "hybrid":
            filling.hybrid(
                some, ratings.indptr, ratings.items, ratings.codes, levels, indptr, items, state.U, V,
                real(problem.mean), config.virtual_ratings.local_steps, real(sizes.rate), real(sizes.decay_U),
                sizes.contrast, uneven, sizes.trained.astype(V.dtype), U_prior, int(rated[some].max()), out,
            )  # fmt: skip
        elif rule == "plausible":
            filling.plausible(
                some, ratings.indptr, ratings.items, ratings.codes, levels, indptr, items,
                averages.astype(V.dtype), SHARE, key, np.uint64(purpose("plausible")), round_key, out,
            )  # fmt: skip
        elif rule in ("nearest", "weighted"):
            filling.from_neighbours(
                rule == "weighted", some, ratings.indptr, ratings.items, ratings.codes, levels, indptr, items,
                table, message.features, out,
            )  # fmt: skip
        elif rule == "drawn":
            filling.drawn(
                some, ratings.indptr, ratings.items, ratings.codes, levels, indptr, items, table, message.features,
                averages, TEMPERATURE, WIDTH, key, np.uint64(purpose("drawn")), round_key, int(rated[some].max()), out,
            )  # fmt: skip
        else:
            _fill_one_by_one(problem, state, message, some, items, out)
        filling.put_on_scale(
            some, indptr, items, stochastic, config.virtual_ratings.rounding != "none", ratings.scale.standard_step,
            key, np.uint64(purpose("rounding")), round_key,
            STANDARD_LOW, STANDARD_HIGH, out,
        )  # fmt: skip

    on_threads(work, chunks(clients, rated + np.diff(indptr)))


def _fill_one_by_one(
    problem: Problem,
    state: SimulationState,
    message: Broadcast,
    clients: NDArray[np.int64],
    items: NDArray[Any],
    out: NDArray[Any],
) -> None:
    """A rule without a kernel: its own file, client by client."""
    rule = part("virtual_ratings", problem.config.virtual_ratings.rule)
    for client in clients:
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        device = device_of(problem, state, int(client))
        out[places] = rule.fill(items[places].astype(np.int64), device, message, problem.config)
