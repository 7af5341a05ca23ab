"""Presets on data that they were not tuned on: other sizes, scales, sparsities and shapes of activity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import assign, preset, presets
from fedrecplus.data import Ratings, Scale, split
from fedrecplus.errors import UserError
from fedrecplus.experiments import tuning_cut
from fedrecplus.experiments.trivial import bias_only, global_mean
from fedrecplus.experiments.validation import Cut
from fedrecplus.training import Fallback, Predictor, Step, evaluate, measure, score, step_size, train

OURS = ("fedmf", "fedrec+", "fedrec+private", "fedrec+secure")
STARS = Scale(1.0, 5.0, 1.0)


def rated(name: str, clients: int, items: int, counts: np.ndarray, scale: Scale = STARS) -> Ratings:
    """Ratings from biases, a low-rank taste and noise, popular items rated more."""
    rng = np.random.default_rng(5)
    popularity = 1.0 / np.arange(1, items + 1) ** 0.7
    rows = [
        np.sort(rng.choice(items, min(int(n), items), replace=False, p=popularity / popularity.sum())) for n in counts
    ]
    U, V = rng.normal(size=(clients, 3)), rng.normal(size=(items, 3))
    own, common = 0.1 * rng.normal(size=clients), 0.15 * rng.normal(size=items)
    shares = [0.6 + own[u] + common[row] + 0.05 * V[row] @ U[u] for u, row in enumerate(rows)]
    noisy = np.concatenate(shares) + 0.15 * rng.normal(size=sum(map(len, rows)))
    codes = np.clip(np.rint(noisy * (scale.levels - 1)), 0, scale.levels - 1)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    ids = np.arange(clients), np.arange(items)
    return Ratings(name, scale, indptr, np.concatenate(rows).astype(np.uint16), codes.astype(np.uint8), *ids)


def constant(of_client: Callable[[np.ndarray], np.ndarray]) -> Ratings:
    ratings = rated("constant", 60, 40, np.full(60, 12))
    return replace(ratings, codes=of_client(ratings.client_of_rating).astype(np.uint8))


SKEWED = np.append(np.full(149, 10), 900)
SETS = {
    "half stars": rated("half stars", 200, 150, np.full(200, 25), Scale(0.5, 5.0, 0.5)),
    "0 to 100": rated("0 to 100", 200, 150, np.full(200, 25), Scale(0.0, 100.0, 1.0)),
    "likes": rated("likes", 200, 150, np.full(200, 25), Scale(0.0, 1.0, 1.0)),
    "dense": rated("dense", 50, 100, np.full(50, 100)),
    "few items": rated("few items", 300, 20, np.full(300, 10)),
    "many items": rated("many items", 150, 3000, np.full(150, 30)),
    "one rates all": rated("one rates all", 150, 1000, SKEWED),
    "five each": rated("five each", 400, 300, np.full(400, 5)),
    "sparse": rated("sparse", 800, 600, np.full(800, 8)),
    "few likes": rated("few likes", 400, 150, np.full(400, 12), Scale(0.0, 1.0, 1.0)),
    "three levels": rated("three levels", 200, 150, np.full(200, 25), Scale(0.0, 2.0, 1.0)),
    "rare items": rated("rare items", 400, 1500, np.full(400, 15)),
    "all the same": constant(lambda client: np.full(len(client), 3)),
    "each one's own": constant(lambda client: client % 5),
}
BEHIND = 0.06
"""a share that a preset may be behind biases that learn their ridges, where ratings are few: the default takes those"""
SMALLEST = 1e-3
"""a share of the scale: what counts as no error"""


def trivial_error(data: Cut, predictor: Callable[[Ratings], Predictor]) -> float:
    fallback = Fallback.of(data.fitted).knowing_everything()
    return score(data.held_out, predictor(data.fitted).predict, fallback).rmse


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("case", SETS)
def test_our_presets_are_little_or_no_worse_than_biases(case: str, name: str) -> None:
    data = tuning_cut(SETS[case])
    error = train(data.fitted, data.held_out, preset(name)).result["rmse"]
    scale = data.fitted.scale
    if error is None:  # where all ratings are the same there is nothing to predict
        assert case == "all the same"
        return
    assert error <= (1 + BEHIND) * trivial_error(data, bias_only) + SMALLEST * (scale.high - scale.low)


@pytest.mark.parametrize("name", ["fedrec+secure", "fedrec"])
@pytest.mark.parametrize("how", ["cold-users", "cold-items"])
def test_no_preset_is_much_worse_than_biases_where_a_person_or_an_item_is_cold(how: str, name: str) -> None:
    training, test = split(SETS["half stars"], how=how)
    plain = score(test, bias_only(training).predict, Fallback.of(training).knowing_everything()).rmse
    error = train(training, test, assign(preset(name), ["server.rounds=3"])).rmse
    assert error <= (1 + BEHIND) * plain  # whose ridges are learned; items' public means are damped by 10


LISTED = (
    "half stars",
    "0 to 100",
    "likes",
    "few items",
    "one rates all",
    "five each",
    "sparse",
    "few likes",
    "rare items",
)
"""people choose by popularity alone there: lists have nothing else to learn, but may know which of it is good"""


@pytest.mark.parametrize("case", LISTED)
def test_lists_are_no_worse_than_the_most_popular_items(case: str) -> None:
    """By each person's NDCG@10, on two cuts: not below popularity's by more than three standard errors."""
    differences, config = [], preset("fedrec+secure")
    for fold in range(2):
        data = tuning_cut(SETS[case], fold, share=0.25)
        ours = evaluate(train(data.fitted, None, config), data.fitted, data.held_out)
        plain = measure(data.fitted, data.held_out, global_mean(data.fitted), Fallback.of(data.fitted, config))
        differences.append(ours.ndcg_by_client - plain.ndcg_by_client)
    judged = np.concatenate(differences)
    judged = judged[np.isfinite(judged)]
    assert judged.mean() >= -3 * judged.std() / np.sqrt(len(judged))


@pytest.mark.parametrize("name", OURS)
def test_our_presets_make_little_of_mere_chance(name: str) -> None:
    ordered = rated("chance", 300, 150, np.full(300, 25))
    data = tuning_cut(replace(ordered, codes=np.random.default_rng(7).permutation(ordered.codes)))
    error = train(data.fitted, data.held_out, preset(name)).rmse
    assert error <= 1.05 * trivial_error(data, global_mean)


OTHERS = [(case, name) for case in ("likes", "few items", "five each") for name in presets() if name not in OURS]
LONG = [("likes", "fedncf"), ("five each", "fedncf")]
"""gradients of a network for each of many people"""


@pytest.mark.parametrize(
    ("case", "name"), [pytest.param(*one, marks=[pytest.mark.slow] * (one in LONG)) for one in OTHERS]
)
def test_the_others_presets_stay_on_the_ground(case: str, name: str) -> None:
    data = tuning_cut(SETS[case])
    error = train(data.fitted, data.held_out, preset(name)).rmse
    scale = data.fitted.scale
    # they have no mean to fall back on, and some wander where nothing is to be learnt
    assert error <= 2 * trivial_error(data, global_mean) + 0.25 * (scale.high - scale.low)


@pytest.mark.parametrize("name", OURS)
def test_likes_of_items_with_one_rater_need_no_smaller_steps(name: str) -> None:
    """Rows that one rating decides must not be thrown past what is plausible and back, ever further."""
    data = tuning_cut(rated("rare likes", 120, 1500, np.full(120, 12), Scale(0.0, 1.0, 1.0)))
    run = train(data.fitted, data.held_out, assign(preset(name), ["server.rounds=200"]))
    assert run.result["retries"] == 0
    assert np.isfinite(run.recommender.model.V).all()


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("scale", [STARS, Scale(0.0, 1.0, 1.0)], ids=str)
def test_people_with_one_rating_need_no_smaller_steps(name: str, scale: Scale) -> None:
    """A person with one or two ratings of popular items, whose rows the others make long, must not blow up alone."""
    data = tuning_cut(rated("newcomers", 1200, 150, np.resize([1, 2, 60], 1200), scale))
    run = train(data.fitted, data.held_out, preset(name))
    assert run.result["retries"] == 0


@pytest.mark.parametrize("name", [name for name in presets() if name != "fedrap"])  # its odds saturate and rest
def test_an_absurd_step_is_said_and_never_ends_in_numbers(name: str) -> None:
    heard: list[Step] = []
    data = tuning_cut(SETS["few items"])
    absurd = f"{step_size(preset(name))[0]}=1e6"
    config = assign(preset(name), [absurd, "server.rounds=20"])
    with pytest.raises(UserError, match="diverged in round"):
        train(data.fitted, data.held_out, config, progress=heard.append)
    assert sum("starting again" in step.message for step in heard if step.message) == 4
