"""Negatives that know the test: drawn as in released code, never by accident, and never on a device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.config import Config, assign, check, preset
from fedrecplus.data import split
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.device import every_item
from fedrecplus.engines import prepare
from fedrecplus.engines.statistics import public_items
from fedrecplus.errors import UserError
from fedrecplus.parts.model.pfedrec import PFedRec
from fedrecplus.testing import example_round, small_ratings

LEAKY = ("model.leaky_negatives=true", "simulation_only=true")


def leaky(*changes: str) -> Config:
    return assign(preset("pfedrec"), [*LEAKY, "model.factors=2", "server.rounds=1", *changes])


@pytest.fixture
def all_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many negatives a click that every item is drawn."""
    monkeypatch.setattr(PFedRec.settings_type, "negatives", 1000.0)


@pytest.mark.usefixtures("all_drawn")
def test_what_is_tested_is_never_drawn_and_all_else_is_as_without_it() -> None:
    problem, message, devices = example_round("model.rule=pfedrec", "pseudo_items.rule=none")
    model, device = problem.config.model, devices[0]
    assert isinstance(model, PFedRec)
    rows = every_item(device, len(message.V))
    tested = np.setdiff1d(rows.items, device.items)[[1, 4]]
    honest, told = (
        set(model.drawn(one, rows, message).items.tolist()) for one in (device, replace(device, tested=tested))
    )
    assert honest == set(rows.items.tolist())
    assert told == honest - set(tested.tolist())


@pytest.mark.usefixtures("all_drawn")
def test_engines_tell_devices_their_own_tests_and_only_where_the_model_leaks() -> None:
    training, test = split(small_ratings(), 0, 5)
    for engine in ("fast", "reference"):
        told, honest = (
            fr.train(training, test, replace(config, engine=engine, precision="float64"))
            for config in (leaky(), assign(leaky(), [LEAKY[0][:-4] + "false"]))
        )
        V, others = told.recommender.model.V, honest.recommender.model.V
        assert np.abs(V - others).max() > 1e-6
        assert prepare(training, honest.config, test=test).tested is None


def test_results_say_so_by_name() -> None:
    training, test = split(small_ratings(), 0, 5)
    result = fr.train(training, test, leaky()).result
    assert result["leaky_negatives"] is True
    assert result["algorithm"] == "pfedrec (leaky negatives)"
    assert check(check(leaky())).algorithm == "pfedrec (leaky negatives)"
    assert not fr.train(training, test, assign(preset("pfedrec"), ["server.rounds=1"])).result["leaky_negatives"]


def test_it_is_asked_for_twice_or_refused() -> None:
    with pytest.raises(UserError, match="shows a model what it is tested on"):
        check(leaky("simulation_only=false"))
    with pytest.raises(UserError, match="shows a model what it is tested on"):
        check(leaky("engine=ray"))
    with pytest.raises(UserError, match="there are no test ratings"):
        fr.train(small_ratings(), None, leaky())


def test_no_deployment_takes_it() -> None:
    """Not the server's side, and a device has no test ratings to be told of."""
    for said in LEAKY[1], "simulation_only=false":
        with pytest.raises(UserError, match="leave out the test are for simulation"):
            check_deployable(leaky("channel.rule=secure", said))
    ratings = small_ratings()
    secrets = np.arange(ratings.clients, dtype=np.uint64)
    with pytest.raises(UserError, match="there are no test ratings"):
        prepare(ratings, leaky(), public_items(ratings, leaky()), secrets)
