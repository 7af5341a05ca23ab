"""The fast engine in float64 gives what the reference gives, for every choice of parts."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus import fast, simulation
from fedrecplus.config import Config, assign
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.parts import choices, part
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
    "contrast": ["client.contrast=6", "server.contrast=3", "client.u_step=rated"],
    "contrast-biases": ["client.contrast=50", "server.contrast=2", "model.biases=true"],
    "contrast-floor": ["client.contrast=6", "server.contrast=4", "model.floor=2"],
    "epochs": ["client.local_epochs=7"],
    "epochs-uniform": ["client.local_epochs=4", "aggregation.rule=uniform"],
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


@pytest.mark.parametrize("pseudo", PSEUDO_RULES)
@pytest.mark.parametrize("virtual", choices("virtual_ratings"))
def test_no_rule_of_the_package_is_run_client_by_client(
    monkeypatch: pytest.MonkeyPatch, pseudo: str, virtual: str
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a client was taken out of the simulation")

    monkeypatch.setattr("fedrecplus.fast.pseudo.device_of", refuse)
    config = assign(START, [f"pseudo_items.rule={pseudo}", f"virtual_ratings.rule={virtual}"])
    problem = simulation.prepare(RATINGS, config)
    fast.simulate_round(problem, simulation.start(problem))


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
@pytest.mark.parametrize("average_ratings", [0, 5])
@pytest.mark.parametrize("traits", ["0", "0.5"])
def test_private_refits_agree(biases: str, shrink: str, average_ratings: int, traits: str) -> None:
    changes = [
        f"model.biases={biases}",
        shrink,
        "prediction.factors=refit",
        "prediction.mean_ratings=3",
        f"prediction.average_ratings={average_ratings}",
        *(f"prediction.{option}={traits}" for option in ("traits", "content", "trait_ratings")),
        "model.global_mean=true",
    ]
    problem = simulation.prepare(RATINGS, assign(START, changes))
    assert problem.public.content.shape[1] > 0
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


def with_a_glutton(ratings: Ratings) -> Ratings:
    """The last client has rated all but the three rarest items, the one before it all but one."""
    items = ratings.item_count
    kept = int(ratings.indptr[-3])
    seldom = np.argsort(ratings.item_counts(), kind="stable")
    rows = [np.setdiff1d(np.arange(items), seldom[:left]) for left in (1, 3)]
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


GROUPED = ["pseudo_items.rule=grouped", "pseudo_items.encoder=public", "virtual_ratings.rule=drawn"]
CROWDS = {
    "pairs": [],
    "ratio-3": ["pseudo_items.ratio=3"],
    "more-in-groups-than-wanted": ["pseudo_items.ratio=1.5"],
    "fewer-wanted-than-rated": ["pseudo_items.ratio=0.4"],
    "count": ["pseudo_items.count=7"],
    "everything-wanted": ["pseudo_items.ratio=30"],
    "padded": ["pseudo_items.pad=true"],
    "ratio-3-padded": ["pseudo_items.ratio=3", "pseudo_items.pad=true"],
    "anew": ["pseudo_items.redraw=true", "client.fraction=0.5"],
    "frozen": ["virtual_ratings.refresh=false", "client.fraction=0.5"],
}
COMPANIES = {
    "catalogue": small_ratings(clients=40, items=150, seed=2),
    "bare": replace(small_ratings(clients=40, items=150, seed=2), catalogue=None),
    "some-years-unknown": with_unknown_years(small_ratings(clients=40, items=150, seed=2)),
    "nearly-all-rated": with_a_glutton(small_ratings(clients=20, items=61, seed=2)),
    "few-items": small_ratings(clients=12, items=5, seed=2),
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("company", COMPANIES)
def test_whole_groups_agree(company: str, crowd: str) -> None:
    assert_engines_agree(assign(START, [*GROUPED, *CROWDS[crowd]]), COMPANIES[company])


@pytest.mark.parametrize("encoder", ["public", "whitened", "identity"])
@pytest.mark.parametrize("largest", [10, 4_096])
def test_drawn_ratings_agree_with_and_without_a_table(
    monkeypatch: pytest.MonkeyPatch, largest: int, encoder: str
) -> None:
    monkeypatch.setattr("fedrecplus.fast.neighbours.LARGEST_TABLE", largest)
    config = assign(START, [*GROUPED, f"pseudo_items.encoder={encoder}", "pseudo_items.redraw=true"])
    assert_engines_agree(config, small_ratings(clients=60, items=30))


@pytest.fixture
def own_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A rule of either kind that the package has no kernel for: a file that somebody put into its room."""
    for room, source in OWN_RULES.items():
        (tmp_path / room).mkdir()
        (tmp_path / room / "somebody_s.py").write_text(source)
        package = importlib.import_module(f"fedrecplus.{room}")
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / room)])
    _forget_rules()
    yield
    for room in OWN_RULES:
        sys.modules.pop(f"fedrecplus.{room}.somebody_s", None)
    monkeypatch.undo()
    _forget_rules()


def _forget_rules() -> None:
    choices.cache_clear()
    part.cache_clear()


OWN_RULES = {
    "pseudo_items": """
import numpy as np

def select(count, device, broadcast, settings):
    return np.setdiff1d(np.arange(len(broadcast.V)), device.items)[-count:]
""",
    "virtual_ratings": """
import numpy as np

def fill(items, device, broadcast, settings):
    return np.full(len(items), device.ratings.max()) - 0.01 * items
""",
}


@pytest.mark.usefixtures("own_rules")
@pytest.mark.parametrize("redraw", ["true", "false"])
def test_rules_without_a_kernel_agree(redraw: str) -> None:
    own = ["pseudo_items.rule=somebody-s", "virtual_ratings.rule=somebody-s", f"pseudo_items.redraw={redraw}"]
    assert_engines_agree(assign(START, own))
    assert_engines_agree(assign(START, [*GROUPED, own[0]]))
    assert_engines_agree(assign(START, [*GROUPED, own[1]]))


def test_cut_neighbour_lists_still_give_the_exact_top_k(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedrecplus.fast.neighbours.LARGEST_TABLE", 10)
    monkeypatch.setattr("fedrecplus.fast.neighbours._CUT_LENGTH", 12)
    assert_engines_agree(assign(START, ["pseudo_items.redraw=true"]))
    assert_engines_agree(assign(START, ["pseudo_items.redraw=true", "pseudo_items.encoder=content"]))
