"""What a client keeps from its first round, and what it draws anew."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus import fast, simulation
from fedrecplus.config import assign
from fedrecplus.fast.pseudo import pseudo_rows
from fedrecplus.parts import choices
from fedrecplus.rounds.filling import pseudo_items
from fedrecplus.simulation.reference import device_of, message_of
from tests.contracts.one_round import RATINGS, START, problem_of
from tests.rounds.engines import ENGINES, run_rounds

PSEUDO_RULES = [rule for rule in choices("pseudo_items") if rule != "none"]
BY_V = ["pseudo_items.rule=similar", "pseudo_items.encoder=centred"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", PSEUDO_RULES)
def test_kept_sets_and_ratings_are_the_same_over_rounds(engine: str, rule: str) -> None:
    changes = [
        f"pseudo_items.rule={rule}", "virtual_ratings.rule=predicted", "virtual_ratings.rounding=stochastic",
        "virtual_ratings.refresh=false",
    ]  # fmt: skip
    first, *later = run_rounds(RATINGS, assign(START, changes), engine, rounds=4)
    assert first.drawn.all()
    assert len(first.pseudo_items) == len(first.virtual_ratings) > 0
    for state in later:
        assert (state.pseudo_items == first.pseudo_items).all()
        assert (state.virtual_ratings == first.virtual_ratings).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_client_that_comes_later_keeps_the_set_of_its_own_first_round(engine: str) -> None:
    config = assign(START, [*BY_V, "client.fraction=0.3", "virtual_ratings.refresh=false"])
    problem = simulation.prepare(RATINGS, config)
    seen: dict[int, tuple[list[int], list[float]]] = {}
    for state in run_rounds(RATINGS, config, engine, rounds=6):
        for client in np.flatnonzero(state.drawn):
            places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
            kept = (state.pseudo_items[places].tolist(), state.virtual_ratings[places].tolist())
            assert seen.setdefault(int(client), kept) == kept
    assert len(seen) > 10


@pytest.mark.parametrize("refresh", ["true", "false"])
def test_ratings_of_a_kept_set_follow_the_model_only_if_told_to(refresh: str) -> None:
    problem = problem_of("virtual_ratings.rule=predicted", f"virtual_ratings.refresh={refresh}")
    state = simulation.start(problem)
    found = []
    for _ in range(2):
        state, _ = simulation.simulate_round(problem, state)
        found.append(pseudo_items(message_of(problem, state), device_of(problem, state, 0), problem.config))
    assert (found[0].items == found[1].items).all()
    assert (found[0].ratings == found[1].ratings).all() == (refresh == "false")


@pytest.mark.parametrize("rule", PSEUDO_RULES)
def test_redrawing_changes_the_set(rule: str) -> None:
    problem = problem_of(f"pseudo_items.rule={rule}", "pseudo_items.redraw=true", "client.local_epochs=5")
    state = simulation.start(problem)
    sets = []
    for _ in range(4):
        assert not state.drawn.any()
        assert state.pseudo_items.size == 0
        reference = [
            set(pseudo_items(message_of(problem, state), device_of(problem, state, client), problem.config).items)
            for client in range(RATINGS.clients)
        ]
        quick = pseudo_rows(problem, state, problem.taking_part(state.server.round))[1]
        cuts = np.split(quick.items, problem.pseudo_indptr[1:-1])
        assert [set(cut.tolist()) for cut in cuts] == reference
        sets.append(reference)
        state, _ = fast.simulate_round(problem, state)
    assert all(any(one != other for one, other in zip(sets[0], later, strict=True)) for later in sets[1:])


def test_a_state_is_not_changed_by_the_round_that_follows() -> None:
    problem = problem_of("virtual_ratings.refresh=false", "server.step=adam")
    for round_of in ENGINES.values():
        state = simulation.start(problem)
        copies = {name: table.copy() for name, table in state.arrays().items()}
        first, _ = round_of(problem, state)
        second, _ = round_of(problem, state)
        for name, table in copies.items():
            assert (state.arrays()[name] == table).all(), name
            assert (first.arrays()[name] == second.arrays()[name]).all(), name
