"""The fast engine in float64 gives what the reference gives: every two values of different settings together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.data import Ratings, Scale
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts import KINDS, built_in, part_class
from fedrecplus.settings import settings_of
from fedrecplus.testing import assert_engines_agree, small_ratings
from fedrecplus.testing.example import state_after
from tests.engines.pairwise import possible, trainings

NUMBERS = {
    "model.batch_size": ["0", "5"],
    "model.local_epochs": ["1", "2", "5"],
    "model.learning_rate_decay": ["1", "0.9"],
    "pseudo_items.ratio": ["1", "0.4", "1.5", "3", "30"],
    "virtual_ratings.predict_after": ["0", "1"],
    "aggregation.temperature": ["1", "0.5"],
    "aggregation.bound": ["0.1", "0"],
    "aggregation.batch_size": ["0", "5"],
    "server.cooldown": ["0", "1"],
    "cohort.fraction": ["1", "0.5"],
    "cohort.dropout": ["0", "0.2"],
}
PAIRED = [kind for kind in KINDS.values() if kind.kind != "privacy"]
"""noise has tests of its own: it is drawn for sums, whoever made them, and refuses most other parts"""
RINGS = ("secure", "shares", "he")
"""channels that add up in a ring leave out whoever is beyond a bound: tests/secure and tests/channels have them"""
RULES = {f"{kind.kind}.rule": [rule for rule in built_in(kind) if rule not in RINGS] for kind in PAIRED}
WORDS = {
    f"{kind.kind}.{option.name}": [value for value in option.values if value != "full"] or ["true", "false"]
    for kind in PAIRED
    for rule in built_in(kind)
    if rule not in RINGS
    for option in settings_of(part_class(kind, rule).settings_type)
    if (option.values or isinstance(option.default, bool)) and option.name != "leaky_negatives"
}
"""but for negatives that look at a test, which these trainings don't have"""
START = assign(
    Config(),
    [
        "model.factors=4", "model.learning_rate=0.1", "model.init_scale=0.1", "server_optimizer.learning_rate=0.02",
        "pseudo_items.rule=similar", "server.rounds=4", "seed=3", "simulation_only=true",
    ],
)  # fmt: skip
"""full covariances take seconds a round, and have a test of their own"""
TRAININGS = trainings(START, RULES | WORDS | NUMBERS)


def with_a_glutton(ratings: Ratings) -> Ratings:
    """The last client has rated all but the three rarest items, the one before it all but one."""
    kept = int(ratings.indptr[-3])
    seldom = np.argsort(ratings.item_counts(), kind="stable")
    rows = [np.setdiff1d(np.arange(ratings.item_count), seldom[:left]) for left in (1, 3)]
    return replace(
        ratings,
        indptr=np.concatenate([ratings.indptr[:-2], kept + np.cumsum([len(row) for row in rows])]),
        items=np.concatenate([ratings.items[:kept], *rows]).astype(ratings.items.dtype),
        codes=np.resize(ratings.codes, kept + sum(len(row) for row in rows)),
    )


def with_unknown_years(ratings: Ratings) -> Ratings:
    assert ratings.catalogue is not None
    years = np.where(np.arange(ratings.item_count) % 3 == 0, 0, ratings.catalogue.years // 10 * 10).astype(np.int16)
    return replace(ratings, catalogue=replace(ratings.catalogue, years=years))


SETS = {
    "stars": small_ratings(),
    "half-stars": small_ratings(scale=Scale(0.5, 5.0, 0.5)),
    "percent": small_ratings(scale=Scale(0.0, 100.0, 1.0)),
    "likes": small_ratings(scale=Scale(0.0, 1.0, 1.0)),
    "no-catalogue": replace(small_ratings(), catalogue=None),
    "years-unknown": with_unknown_years(small_ratings()),
    "nearly-all-rated": with_a_glutton(small_ratings(clients=20)),
    "few-items": small_ratings(clients=12, items=5, seed=2),
    "a-client-without-ratings": small_ratings().where(small_ratings().client_of_rating != 4),
}


@pytest.mark.parametrize("number", range(len(TRAININGS)))
def test_every_pair_of_settings_agrees(number: int) -> None:
    """Each training on one of the data sets, in turn."""
    chosen, config = TRAININGS[number]
    names = [name for name in SETS if chosen["encoder.rule"] != "content" or name != "no-catalogue"]
    name = names[number % len(names)]
    print(name, chosen)  # shown where it fails
    assert_engines_agree(config, SETS[name])


def test_the_pairs_hold_all_rules_that_can_be_together() -> None:
    met = {
        (one, other)
        for chosen, _ in TRAININGS
        for one in chosen.items()
        for other in chosen.items()
        if one[0] < other[0] and one[0] in RULES and other[0] in RULES
    }
    for first in RULES:
        for second in (name for name in RULES if first < name):
            for one in RULES[first]:
                for other in RULES[second]:
                    together = possible(START, {first: one, second: other})
                    assert ((first, one), (second, other)) in met or together is None, (one, other)
    assert len(TRAININGS) < 240


GROUPED = ["pseudo_items.rule=grouped", "encoder.rule=public", "virtual_ratings.rule=drawn"]


@pytest.mark.parametrize("name", [name for name in SETS if name != "percent"])
@pytest.mark.parametrize(
    "changes",
    [
        ["pseudo_items.ratio=1.5"],
        ["pseudo_items.ratio=2", "pseudo_items.size_classes=true"],
        ["pseudo_items.ratio=3", "pseudo_items.size_classes=true"],
    ],
)
def test_whole_groups_agree_whatever_the_catalogue(name: str, changes: list[str]) -> None:
    assert_engines_agree(assign(START, [*GROUPED, *changes]), SETS[name])


def test_engines_agree_without_a_table_of_likeness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.parts.similarity.LARGEST_TABLE", 10)
    for encoder in ("centred", "content"):
        changes = ["pseudo_items.redraw=true", "virtual_ratings.rule=nearest", f"encoder.rule={encoder}"]
        assert_engines_agree(assign(START, changes))


def test_full_covariances_agree_and_are_not_the_diagonal_ones() -> None:
    ratings = small_ratings(clients=8, items=12)
    rule = ["model.factors=2", "aggregation.rule=wasserstein", "aggregation.rows=table", "model.batch_size=2"]
    tables = []
    for kind in ("full", "diagonal"):
        config = assign(START, [*rule, f"aggregation.covariance={kind}", "aggregation.batch_size=2"])
        assert_engines_agree(config, ratings)
        tables.append(state_after(prepare(ratings, config), 3).server)
    assert tables[0].last_covariance.shape == (24, 24)
    assert np.linalg.eigvalsh(tables[0].last_covariance).min() > -1e-9
    assert np.abs(tables[0].V - tables[1].V).max() > 1e-9


def test_ratings_that_some_clients_kept_are_not_solved_for_by_those_alone() -> None:
    """A client that joins later is filled by weights of its own; the others' weights must not be left at zero."""
    kept = ["virtual_ratings.rule=predicted", "virtual_ratings.refresh=false", "cohort.dropout=0.3"]
    assert_engines_agree(assign(START, ["model.rule=reconstruction", *kept]))


@pytest.mark.parametrize("model", built_in(KINDS["model"]))
def test_result_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    rules = [f"model.rule={model}", "virtual_ratings.rule=weighted", "aggregation.rule=wasserstein"]
    problem = prepare(small_ratings(clients=600, items=120), assign(START, rules))
    tables = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("FEDRECPLUS_THREADS", threads)
        tables.append(state_after(problem, 3, "fast").server.V)
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(tables[0], tables[2])


def test_an_engine_that_is_not_there_is_answered_with_the_nearest_and_central_needs_gradient_steps() -> None:
    with pytest.raises(UserError, match="unknown engine 'fats'") as error:
        engine_of(assign(START, ["engine=fats"]))
    assert "did you mean 'fast'" in error.value.remedy
    with pytest.raises(UserError, match="gradient steps"):
        engine_of(assign(START, ["engine=central", "model.rule=reconstruction"]))
