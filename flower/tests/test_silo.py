"""What a silo answers to a server that asks for more than it may have, without Flower's processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fedrec_silos import silo
from fedrec_silos.records import broadcast_arrays, content
from fedrec_silos.server import check_figures, config_of
from flwr.app import Context, RecordDict

import fedrecplus as fr
from fedrecplus.config import Config, assign, dumps, preset
from fedrecplus.data import load
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.rounds import broadcast, start_server

PEOPLE = "synthetic:clients=330,items=60,ratings_per_client=15"
ITEMS = ItemCatalogue.published(load(PEOPLE))


class Asked:
    """A silo that has joined a task."""

    def __init__(self, algorithm: str, *settings: str, run: int = 1, dataset: str = PEOPLE, **node: Any) -> None:
        config: Config = assign(preset(algorithm), [*settings, "server.held_back=0"])
        self.context = Context(run, 2, {"partition-id": 0, "num-partitions": 2, **node}, RecordDict(), {})
        task = content(ITEMS.arrays(), config=dumps(config), dataset=dataset, fold=0)
        self.context.state["task"] = task.array_records["arrays"]
        self.context.state["terms"] = task.config_records["facts"]
        state = start_server(config, ITEMS.public)
        self.told = broadcast_arrays(broadcast(state, ITEMS.public, state.V[:0]))

    def stage(self, name: str, **facts: Any) -> dict[str, Any]:
        return silo._STAGES[name](silo.Silo(self.context), self.told, {"round": 0, **facts})[1]

    def errors(self) -> dict[str, Any]:
        return silo._errors(silo.Silo(self.context), self.told, {"round": 0})[1]


def test_a_sum_in_the_clear_is_of_enough_people_whatever_cohort_is_drawn() -> None:
    Asked("fedmf").stage("sums")
    with pytest.raises(fr.UserError, match="2 people are too few"):
        Asked("fedmf", "cohort.fraction=0.01").stage("sums")
    Asked("fedmf", "cohort.fraction=0.01", **{"least-people": 2}).stage("sums")


def test_errors_are_of_enough_people() -> None:
    """Of items that few rated they would be single ratings' errors, beside predictions that the server knows."""
    assert Asked("fedmf").errors()["ratings"] > 0
    with pytest.raises(fr.UserError, match="too few to send what errors"):
        Asked("fedmf", **{"least-people": 170}).errors()


def test_a_task_under_secure_sums_sends_none_in_the_clear() -> None:
    with pytest.raises(fr.UserError, match="go under masks"):
        Asked("fedrec+secure").stage("sums")


def test_a_secure_sum_that_can_be_taken_apart_is_refused() -> None:
    asked = {"number": 0, "session": bytes(16), "silos": 3}
    Asked("fedrec+secure").stage("advertise", people=330, **asked)
    Asked("fedrec+secure", "channel.demonstration=true").stage("advertise", people=90, **asked)
    for settings, people in (("", 90), ("cohort.fraction=0.1", 330)):
        with pytest.raises(fr.UserError, match="can be taken apart"):
            Asked("fedrec+secure", *settings.split()).stage("advertise", people=people, **asked)


def test_a_secure_sum_is_of_three_silos_whatever_the_server_says() -> None:
    one = Asked("fedrec+secure")
    one.stage("advertise", people=330, number=0, session=bytes(16), silos=1)
    client, _ = silo._begun(silo.Silo(one.context))
    assert client.state.least_cohort == 3


def test_a_silo_counts_what_noise_has_cost_its_people_over_all_runs(tmp_path: Path) -> None:
    ratings = tmp_path / "ratings.csv"
    load(PEOPLE).to_frame("polars").write_csv(ratings)
    noised = ("privacy.rule=central", "statistics.source=public", "privacy.epsilon=10")
    own = {"ratings": str(ratings), "dataset": "", "lifetime-epsilon": 25.0}
    for run in (1, 1, 2):
        Asked("fedmf", *noised, run=run, **own).stage("sums")
    with pytest.raises(fr.UserError, match="ε = 20 is spent here, 10 more would exceed"):
        Asked("fedmf", *noised, run=3, **own).stage("sums")
    Asked("fedmf", run=4, **own).stage("sums")


def test_what_the_app_cannot_run_or_claim_is_refused() -> None:
    with pytest.raises(fr.UserError, match="take turns"):
        config_of({"algorithm": "fedrec+secure", "settings": "model.rule=sequence", "rounds": 0})
    budget = assign(preset("fedmf"), ["privacy.rule=central", "statistics.source=public"])
    check_figures(budget, ITEMS)
    with pytest.raises(fr.UserError, match="no part of any budget"):
        check_figures(budget, ItemCatalogue.published(load(PEOPLE), participants=True))
