"""The fast engine in float64 gives what the reference gives, for every choice of parts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedrecplus import fast, simulation
from fedrecplus.config import Config, assign
from fedrecplus.data.scale import Scale
from fedrecplus.parts import choices
from tests.small_data import small_ratings

RATINGS = small_ratings()
PSEUDO_RULES = [rule for rule in choices("pseudo_items") if rule != "none"]
OPTIONS = {
    "biases": ["model.biases=true", "model.global_mean=true", "model.start=normal"],
    "shrink": ["model.shrink_to=start", "model.decay_per=rating", "model.user_regularisation=0.1"],
    "floor": ["model.floor=2", "client.fraction=0.3"],
    "u-rated": ["client.u_step=rated"],
    "batches": ["client.batch_size=5"],
    "batches-u-rated": ["client.batch_size=5", "client.u_step=rated", "model.biases=true"],
    "fraction": ["client.fraction=0.5", "client.dropout=0.2"],
    "redraw": ["pseudo_items.redraw=true"],
    "frozen": ["virtual_ratings.refresh=false", "client.fraction=0.5"],
    "count": ["pseudo_items.count=7"],
    "pad": ["pseudo_items.pad=true"],
    "crowded": ["pseudo_items.ratio=30"],
    "rounded": ["virtual_ratings.rounding=nearest"],
    "momentum": ["server.step=momentum", "server.learning_rate=0.3"],
    "adam": ["server.step=adam", "server.learning_rate=0.01"],
    "decay": ["client.learning_rate_decay=0.9", "server.learning_rate_decay=0.9"],
    "over-clients": ["aggregation.normalise=clients", "server.learning_rate=20"],
    "sum": ["aggregation.normalise=sum", "server.learning_rate=0.1"],
    "table": ["aggregation.rows=table"],
    "own": ["aggregation.rows=own", "aggregation.temperature=0.5"],
    "mean-step": ["aggregation.global_step=mean"],
    "client-weights": ["aggregation.weigh_on=client"],
    "covariance": ["aggregation.covariance=diagonal"],
    "covariance-table": ["aggregation.covariance=diagonal", "aggregation.rows=table", "client.batch_size=4"],
    "denoising": ["aggregation.rule=uniform", "aggregation.denoising=0.25"],
    "denoising-batches": ["aggregation.rule=uniform", "aggregation.denoising=0.25", "client.batch_size=3"],
    "encoder-identity": ["pseudo_items.encoder=identity"],
    "encoder-whitened": ["pseudo_items.encoder=whitened"],
    "encoder-content": ["pseudo_items.encoder=content"],
    "encoder-learned": ["pseudo_items.encoder=learned"],
    "encoder-public": ["pseudo_items.encoder=public"],
}
START = assign(
    Config(),
    [
        "precision=float64", "model.factors=5", "client.local_epochs=2", "client.learning_rate=0.2", "seed=3",
        "pseudo_items.rule=similar", "virtual_ratings.rule=weighted", "virtual_ratings.rounding=stochastic",
        "aggregation.rule=wasserstein",
    ],
)  # fmt: skip


def assert_engines_agree(config: Config, ratings=RATINGS, rounds: int = 3) -> None:
    problem = simulation.prepare(ratings, config)
    slow = quick = simulation.start(problem)
    for _ in range(rounds):
        slow, slow_report = simulation.simulate_round(problem, slow)
        quick, quick_report = fast.simulate_round(problem, quick)
        assert quick_report == slow_report
    for name, expected in slow.arrays().items():
        np.testing.assert_allclose(quick.arrays()[name], expected, rtol=0, atol=1e-9, err_msg=name)
    assert not np.allclose(slow.server.V, simulation.start(problem).server.V)


@pytest.mark.parametrize(
    ("pseudo", "virtual", "aggregation"),
    list(itertools.product(PSEUDO_RULES, choices("virtual_ratings"), choices("aggregation"))),
)
@pytest.mark.parametrize("redraw", ["true", "false"])
def test_every_combination_of_rules_agrees(pseudo: str, virtual: str, aggregation: str, redraw: str) -> None:
    changes = [
        f"pseudo_items.rule={pseudo}", f"virtual_ratings.rule={virtual}", f"aggregation.rule={aggregation}",
        f"pseudo_items.redraw={redraw}", "virtual_ratings.predict_after=1",
    ]  # fmt: skip
    assert_engines_agree(assign(START, changes))


@pytest.mark.parametrize("aggregation", choices("aggregation"))
def test_no_pseudo_items_agree(aggregation: str) -> None:
    assert_engines_agree(assign(START, ["pseudo_items.rule=none", f"aggregation.rule={aggregation}"]))


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("pseudo", ["similar", "random"])
def test_every_option_agrees(option: str, pseudo: str) -> None:
    assert_engines_agree(assign(START, [f"pseudo_items.rule={pseudo}", *OPTIONS[option]]))


@pytest.mark.parametrize("scale", [Scale(0.5, 5.0, 0.5), Scale(0.0, 100.0, 1.0)], ids=str)
def test_other_scales_agree(scale: Scale) -> None:
    assert_engines_agree(START, small_ratings(scale=scale))


@pytest.mark.parametrize("biases", ["true", "false"])
@pytest.mark.parametrize("shrink", ["model.shrink_to=zero", "model.shrink_to=start", "prediction.shrink_to=typical"])
def test_private_refits_agree(biases: str, shrink: str) -> None:
    changes = [
        f"model.biases={biases}",
        shrink,
        "prediction.factors=refit",
        "prediction.mean_ratings=3",
        "model.global_mean=true",
    ]
    problem = simulation.prepare(RATINGS, assign(START, changes))
    state, _ = simulation.simulate_round(problem, simulation.start(problem))
    expected = simulation.prediction_factors(problem, state)
    np.testing.assert_allclose(fast.prediction_factors(problem, state), expected, rtol=0, atol=1e-9)


def test_result_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = small_ratings(clients=600, items=120)
    problem = simulation.prepare(ratings, assign(START, ["precision=float32"]))
    tables = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("FEDRECPLUS_THREADS", threads)
        state = simulation.start(problem, np.float32)
        for _ in range(3):
            state, _ = fast.simulate_round(problem, state)
        tables.append(state.server.V)
    assert (tables[0] == tables[1]).all()
    assert (tables[0] == tables[2]).all()


def test_cut_neighbour_lists_still_give_the_exact_top_k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.fast.neighbours.LARGEST_TABLE", 10)
    monkeypatch.setattr("fedrecplus.fast.neighbours._CUT_LENGTH", 12)
    assert_engines_agree(assign(START, ["pseudo_items.redraw=true"]))
    assert_engines_agree(assign(START, ["pseudo_items.redraw=true", "pseudo_items.encoder=content"]))
