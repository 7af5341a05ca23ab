"""A budget in a deployment: what it is refused with, and what the result says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.config import Config, change
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.operate.runs import deal_out
from fedrecplus.deploy.server import Deployment
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.errors import UserError
from fedrecplus.training.privacy import LEDGER, Ledger, budget_spent, privacy_lines
from tests.deploy.in_process import MODEL, InProcessLink, allow_clear, begin, serve, stored
from tests.deploy.summing import NODES, secure_config
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

RATINGS = small_ratings(clients=16, items=30)


def budget_config(source: str = "public", **settings: Any) -> Config:
    budget = {"privacy__rule": "central", "privacy__epsilon": 8.0, "privacy__delta": 1e-3}
    uniform = {"aggregation__rule": "uniform", "aggregation__normalise": "item", "statistics__source": source}
    return secure_config(**{**uniform, **budget, **settings})


def begun(folder: Path, config: Config, nodes: int = NODES, **public: Any) -> list[NodeHome]:
    """A run with a budget, whose catalogue has these figures."""
    catalogue = ItemCatalogue.published(RATINGS)
    catalogue = replace(catalogue, public=replace(catalogue.public, **public))
    limits = Deployment(nodes, model=MODEL, deadline=GIVE_UP, patience=GIVE_UP)
    begin(folder / "run", config, limits, catalogue, {"dataset": "small"})
    return deal_out(RATINGS, folder / "nodes", nodes, config.seed)


@pytest.mark.parametrize(
    ("source", "public", "reason"),
    [
        ("public", {"source": "participants"}, "no part of any budget"),
        ("secure-sum", {"source": "secure-sum"}, "no part of any budget"),
        ("public", {"source": "secure-sum", "epsilon": 1.0}, "statistics.source=public"),
        ("secure-sum", {"source": "secure-sum", "epsilon": 7.9}, "cost ε = 7.9"),
        ("secure-sum", {"source": "secure-sum", "epsilon": 1.0, "people": 2000}, "publishes all data of one random"),
    ],
)
def test_figures_that_the_budget_does_not_cover_are_refused(
    source: str, public: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=reason):
        begun(tmp_path, budget_config(source), **public)


def test_without_secure_sums_there_is_no_sum_for_the_statistics_either(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"statistics\.source=secure-sum"):
        begun(tmp_path, change(budget_config("secure-sum"), "channel.rule", "clear"))


def test_delta_is_compared_with_nodes_at_first_and_with_people_when_they_come(tmp_path: Path) -> None:
    config = budget_config(privacy__delta=0.07)
    with pytest.raises(UserError, match="with 15 clients means nothing"):
        begun(tmp_path / "many", config, nodes=15)
    homes = begun(tmp_path, config)
    for home in homes:
        allow_clear(home.store, bare=True, demonstration=True, largest_delta=0.1)
    with pytest.raises(UserError, match="with 16 clients means nothing"):
        serve(InProcessLink(homes), tmp_path / "run")
    assert privacy_lines(tmp_path / "run" / LEDGER) == [], "nothing was released"


def test_the_result_says_what_the_server_saw_and_what_the_ledger_has_spent(tmp_path: Path) -> None:
    config = budget_config("secure-sum")
    homes = begun(tmp_path, config, source="secure-sum", epsilon=1.0)
    serve(InProcessLink(homes), tmp_path / "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["channel"], result["rows_sent"], result["masks"]) == ("secure", "whole", "computed")
    assert result["statistics"] == {"source": "secure-sum", "epsilon": 1.0}
    lines = privacy_lines(tmp_path / "run" / LEDGER)
    assert [line["release"] for line in lines] == ["statistics", "round 1", "round 2"]
    privacy = result["privacy"]
    assert privacy["epsilon"] == pytest.approx(budget_spent(lines, 1e-3))
    assert privacy["epsilon"] == pytest.approx(8.0, rel=0.01)
    assert privacy["epsilon"] <= 8.0
    assert (privacy["unit"], privacy["seeded_noise"]) == ("user", False)


def test_a_round_that_was_released_twice_is_paid_for_twice(tmp_path: Path) -> None:
    homes = begun(tmp_path, budget_config())
    ledger = Ledger.of_model(stored(tmp_path / "run").book, budget_config(), MODEL)
    assert ledger is not None
    ledger.before_round(0, fresh=True)  # of a server that was killed before it could save the round
    serve(InProcessLink(homes), tmp_path / "run")
    privacy = json.loads((tmp_path / "run" / "result.json").read_text())["privacy"]
    assert privacy["epsilon"] == pytest.approx(budget_spent(privacy_lines(tmp_path / "run" / LEDGER), 1e-3))
    assert privacy["epsilon"] > 8.0


def test_without_a_budget_nothing_is_claimed(tmp_path: Path) -> None:
    serve(InProcessLink(begun(tmp_path, secure_config(rounds=1))), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["privacy"] is None
