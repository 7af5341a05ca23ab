"""A deployed round equals a simulated one with the same keys, for every preset that can be deployed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, recommend
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.deploy.replay import simulated
from tests.deploy.summing import model
from tests.small_data import small_ratings

PRESETS = ["fedrec+", "fedrec+private", "fedrec+paper", "fedrec", "fedrec-hf", "fedmf", "fedmf-vanilla"]


@pytest.mark.parametrize("name", PRESETS)
def test_rounds_equal_simulated_rounds_bit_for_bit(name: str, tmp_path: Path) -> None:
    config = small_config(name, engine="reference", precision="float64")
    ratings = small_ratings()
    serve(InProcessLink(prepared(tmp_path, ratings, config)), tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(ratings, config))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("precision", "most"), [("float64", 1e-12), ("float32", 1e-5)])
def test_a_silo_through_the_fast_engine_equals_the_reference(
    name: str, precision: str, most: float, tmp_path: Path
) -> None:
    config = small_config(name, engine="fast", precision=precision)
    ratings = small_ratings()
    serve(InProcessLink(prepared(tmp_path, ratings, config)), tmp_path / "run")
    np.testing.assert_allclose(model(tmp_path), simulated(ratings, replace(config, engine="reference")), atol=most)


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("scale", [Scale(0.5, 5.0, 0.5), Scale(0.0, 1.0, 1.0)], ids=str)
def test_other_scales_and_items_with_names_are_no_exception(engine: str, scale: Scale, tmp_path: Path) -> None:
    whole = small_ratings(scale=scale)
    names = np.array([f"isbn {number:03}-x" for number in range(whole.item_count)])
    ratings = replace(whole, item_ids=names, client_ids=np.array([f"user {u}" for u in range(whole.clients)]))
    config = small_config(engine=engine, precision="float64")
    homes = prepared(tmp_path, ratings, config)
    serve(InProcessLink(homes), tmp_path / "run")
    np.testing.assert_allclose(model(tmp_path), simulated(ratings, replace(config, engine="reference")), atol=1e-12)
    with Store.open(homes[0].store) as store:
        best = recommend(store, store.persons()["user 3"], 3, tmp_path / "run")
        assert all(item.item in names for item in best)
        assert all(scale.low <= item.rating <= scale.high for item in best)


@pytest.mark.parametrize("covariance", ["none", "diagonal"])
def test_clients_that_weigh_themselves_equal_the_simulation(covariance: str, tmp_path: Path) -> None:
    settings = {"aggregation__weigh_on": "client", "aggregation__covariance": covariance}
    config = small_config(engine="reference", precision="float64", **settings)
    ratings = small_ratings()
    serve(InProcessLink(prepared(tmp_path, ratings, config)), tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(ratings, config))
