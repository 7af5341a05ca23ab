"""What a client keeps from its first round, and what it draws anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.engines import device_of, engine_of, message_of, prepare
from fedrecplus.parts import KINDS, built_in
from fedrecplus.rounds import pseudo_items
from fedrecplus.testing import example_config, example_problem, small_ratings
from tests.rounds.engines import ENGINES, run_rounds

PSEUDO_RULES = [rule for rule in built_in(KINDS["pseudo_items"]) if rule != "none"]
RATINGS = small_ratings()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_client_keeps_the_set_and_the_ratings_of_its_own_first_round(engine: str) -> None:
    for rule in PSEUDO_RULES:
        changes = ["virtual_ratings.rule=predicted", "virtual_ratings.rounding=stochastic"]
        changes += ["virtual_ratings.refresh=false", "cohort.fraction=0.3"]
        config = example_config(f"pseudo_items.rule={rule}", *changes)
        problem = prepare(RATINGS, config)
        seen: dict[int, tuple[list[int], list[float]]] = {}
        for state in run_rounds(RATINGS, config, engine, rounds=5):
            for client in np.flatnonzero(state.private.drawn):
                places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
                kept = (state.private.pseudo_items[places].tolist(), state.private.virtual_ratings[places].tolist())
                assert seen.setdefault(int(client), kept) == kept
        assert len(seen) > 10


@pytest.mark.parametrize("refresh", ["true", "false"])
def test_ratings_of_a_kept_set_follow_the_model_only_if_told_to(refresh: str) -> None:
    problem = example_problem("virtual_ratings.rule=predicted", f"virtual_ratings.refresh={refresh}")
    found = []
    for state in run_rounds(RATINGS, problem.config, "reference", rounds=2):
        found.append(pseudo_items(message_of(problem, state), device_of(problem, state.private, 0), problem.config))
    np.testing.assert_array_equal(found[0].items, found[1].items)
    assert (found[0].ratings == found[1].ratings).all() == (refresh == "false")


@pytest.mark.parametrize("rule", PSEUDO_RULES)
def test_redrawing_changes_the_set_in_the_same_way_in_both_engines(rule: str) -> None:
    config = example_config(f"pseudo_items.rule={rule}", "pseudo_items.redraw=true", "model.local_epochs=5")
    problem, engines = prepare(RATINGS, config), [engine_of(replace(config, engine=name)) for name in ENGINES]
    sets = []
    for state in run_rounds(RATINGS, config, "fast", rounds=3):
        assert not state.private.drawn.any()
        assert state.private.pseudo_items.size == 0
        message, clients = message_of(problem, state), problem.cohort(state.server.round)
        slow, quick = (engine.item_sets(problem, state.private, message, clients) for engine in engines)
        assert {client: items.tolist() for client, items in quick.items()} == {c: i.tolist() for c, i in slow.items()}
        sets.append({client: items.tolist() for client, items in slow.items()})
    assert sets[0] != sets[1] != sets[2]


def test_a_state_is_not_changed_by_the_round_that_follows_and_holds_all_that_is_needed() -> None:
    problem = example_problem("virtual_ratings.refresh=false", "server_optimizer.rule=adam")
    for name in ENGINES:
        engine = engine_of(replace(problem.config, engine=name))
        state = engine.start(problem)
        copies = {array: table.copy() for array, table in state.arrays().items()}
        first, _ = engine.round(problem, state)
        second, _ = engine.round(problem, type(state).of_arrays(copies))
        for array, table in copies.items():
            np.testing.assert_array_equal(state.arrays()[array], table)
            np.testing.assert_array_equal(first.arrays()[array], second.arrays()[array])
