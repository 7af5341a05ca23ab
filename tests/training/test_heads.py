"""Federated validation: what devices keep back chooses the head, and is trained on after that."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.config import assign, preset
from fedrecplus.data import Ratings
from fedrecplus.engines import Engine, Problem, engine_of, prepare, rounds
from fedrecplus.errors import UserError
from fedrecplus.training import Checkpoint, Fallback, errors_of, predictor_of, train
from fedrecplus.training.heads import HeldBack, kept_back, surely_best
from fedrecplus.training.run_folder import CHECKPOINT

SMALL = ("model.factors=3", "model.interaction_factors=4", "server.rounds=4", "channel.least_cohort=5")


def ratings_of() -> tuple[Ratings, Ratings]:
    return fr.split(fr.load("synthetic:clients=150,items=60,ratings_per_client=12"))


def config_of(*settings: str) -> fr.Config:
    return assign(preset("fedrec+secure"), [*SMALL, "server.held_back=0.3", *settings])


def held(training: Ratings) -> tuple[Problem, Engine, HeldBack]:
    """With what devices keep back of the usual training."""
    problem = prepare(training, config_of())
    held_back = HeldBack.of(problem)
    assert held_back is not None
    return problem, engine_of(problem.config), held_back


def test_everybody_is_left_with_a_rating() -> None:
    training, _ = ratings_of()
    kept = kept_back(training, 0.9, 0)
    left = np.bincount(training.client_of_rating[~kept], minlength=training.clients)
    assert kept.mean() > 0.5
    assert left[np.diff(training.indptr) > 0].min() >= 1


def test_what_is_kept_back_has_no_part_in_rounds_before_the_choice_and_all_ratings_have_in_those_after() -> None:
    training, _ = ratings_of()
    problem, engine, held_back = held(training)
    assert len(held_back.ratings) + len(held_back.problem.ratings) == len(training)
    steps = [state for state, _ in held_back.rounds(engine, problem, engine.start(problem))]
    alone = [state for state, _ in rounds(engine, held_back.problem)]
    assert [state.server.round for state in steps] == [1, 2, 3, 4]
    np.testing.assert_array_equal(steps[held_back.until - 1].server.V, alone[held_back.until - 1].server.V)
    after, _ = engine.round(problem, steps[held_back.until - 1])
    np.testing.assert_array_equal(steps[held_back.until].server.V, after.server.V)


def test_the_chosen_head_leads_beyond_its_standard_error_and_is_the_models() -> None:
    training, test = ratings_of()
    problem, engine, held_back = held(training)
    config, kept = problem.config, held_back.ratings
    state = list(rounds(engine, held_back.problem))[held_back.until - 1][0]
    chosen, _ = held_back.chosen(engine, state)
    fallback, head = Fallback.of(held_back.problem.ratings, config), ()
    for choice in (one for one in config.model.head_choices() if one.by == "errors"):
        losses = []
        for place in range(len(choice.candidates)):
            headed = replace(state, server=replace(state.server, head=(*head, place)))
            predict = predictor_of(engine, held_back.problem, headed).predict
            losses.append(errors_of(kept, predict, fallback).squared)
        head = (*head, surely_best(np.array(losses), choice.sure))
    assert chosen.server.head[: len(head)] == head
    run = train(training, test, config)
    assert run.result["chosen"] == config.model.head_changes(chosen.server.head)
    settings = run.recommender.model.config.model.settings
    assert {name: getattr(settings, name) for name in run.result["chosen"]} == run.result["chosen"]


def test_a_lead_within_its_standard_error_is_none() -> None:
    rng = np.random.default_rng(0)
    usual = rng.normal(size=400) ** 2
    assert surely_best(np.array([usual, usual - 0.001 + rng.normal(size=400)])) == 0
    assert surely_best(np.array([usual, usual - 0.2 + 0.1 * rng.normal(size=400)])) == 1
    by_one_and_a_half = np.array([usual, usual - 0.15 + 2.0 * (-1.0) ** np.arange(400)])
    assert (surely_best(by_one_and_a_half), surely_best(by_one_and_a_half, 2.0)) == (1, 0)


def test_nothing_is_kept_back_without_a_choice() -> None:
    training, _ = ratings_of()
    assert HeldBack.of(prepare(training, config_of("server.held_back=0"))) is None
    assert HeldBack.of(prepare(training, assign(preset("fedmf"), ["server.held_back=0.3"]))) is None


def test_a_run_that_goes_on_after_the_choice_comes_to_the_same(tmp_path) -> None:
    training, test = ratings_of()
    config, calls = config_of(), iter([False, False, True])
    whole = train(training, test, config)
    assert whole.result["chosen"], "else there is nothing to keep"
    with pytest.raises(KeyboardInterrupt):
        train(training, test, config, out=tmp_path / "run", stop=lambda: next(calls))
    shutil.copytree(tmp_path / "run", tmp_path / "earlier")
    resumed = train(training, test, config, out=tmp_path / "run", resume=True)
    assert resumed.result["chosen"] == whole.result["chosen"]
    assert resumed.rmse == whole.rmse
    saved = Checkpoint.read(tmp_path / "earlier" / CHECKPOINT)
    server = replace(saved.state.server, head=saved.state.server.head[1:])  # as before there was another choice
    replace(saved, state=replace(saved.state, server=server)).write(tmp_path / "earlier" / CHECKPOINT)
    with pytest.raises(UserError, match="validation chose among other settings"):
        train(training, test, config, out=tmp_path / "earlier", resume=True)
