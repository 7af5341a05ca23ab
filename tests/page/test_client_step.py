"""The upload that the panel shows is the one that ``rounds.client_round`` makes at the same rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config, preset
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import client_round, encode_items
from fedrecplus.training.model_files import SharedModel
from fedrecplus.web.page.build import read_model
from fedrecplus.web.page.quantise import tables_of, with_tables
from fedrecplus.web.page.what_leaves import with_columns_of
from tests.page.in_node import ROUNDS, run_in_node

SECRET = 0x9E3779B97F4A7C15 ^ 12345
STEPS = {
    "fedmf": ("fedmf", "fedrec+", "fedrec+private"),
    "fedrec+secure": ("fedmf", "fedrec+private", "fedrec+secure"),
    "mf": ("fedrec", "fedrec++"),
    "paper": ("fedrec+paper",),
    "biased-mf": ("fedmf-vanilla",),
    "half-stars": ("fedrec+",),
    "biases": ("biases",),
}
"""run → presets whose client step runs at its table"""
SCRIPT = """
print(rounds(({ upload, rows }, message, preset) => ({ items: [...upload.items], delta: [...upload.delta.data],
  statistic: [...upload.statistic], rated: rows.rated, runs: engine.canRun(preset) })));
"""


@pytest.mark.parametrize("name", STEPS)
def test_the_upload_is_that_of_the_client_round(
    name: str, run_of: Callable[[str], Path], site_of: Callable[[str], Path], tmp_path: Path
) -> None:
    model, people, given = asked_of(run_of(name), site_of(name), STEPS[name], (1, 4, 30))
    found = run_in_node(tmp_path, ROUNDS + SCRIPT, given)
    for (items, ratings), uploads in zip(people, found, strict=True):
        for algorithm, mine in zip(STEPS[name], uploads, strict=True):
            theirs = python_upload(model, config_of(algorithm, model), items, ratings)
            assert mine["runs"]
            assert mine["items"] == theirs.items.tolist()
            assert np.flatnonzero(mine["rated"]).tolist() == np.flatnonzero(np.isin(theirs.items, items)).tolist()
            assert mine["delta"] == pytest.approx(theirs.delta.ravel(), abs=1e-9)
            assert mine["statistic"] == pytest.approx(theirs.statistic, abs=1e-9)


def test_draws_are_those_of_python(tmp_path: Path) -> None:
    script = """
    const key = engine.subkey(BigInt(given.key), "pseudo-items", 3);
    print({ key: String(key), draws: given.indices.map((index) => engine.uniform(key, index)) });
    """
    indices = [0, 1, 7, 2**31, 60_000]
    found = run_in_node(tmp_path, script, {"key": str(2**64 - 3), "indices": indices})
    key = subkey(2**64 - 3, "pseudo-items", 3)
    assert found["key"] == str(key)
    assert found["draws"] == uniform(key, np.array(indices)).tolist()


def asked_of(run: Path, site: Path, presets: Sequence[str], sizes: Sequence[int]) -> tuple[SharedModel, Any, Any]:
    """The model as the page has it, some people's items and ratings, and what ``ROUNDS`` is given of them."""
    exact = read_model(run)[0]
    model = with_tables(exact, tables_of(exact, 8))
    people = [made_up(model, size) for size in sizes]
    told = [[items.tolist(), ratings.tolist()] for items, ratings in people]
    return model, people, {"site": str(site), "secret": str(SECRET), "presets": presets, "people": told}


def made_up(model: SharedModel, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    items = np.sort(rng.choice(len(model.item_ids), n, replace=False))
    codes = rng.integers(0, model.scale.levels, n)
    return items, model.scale.standardise(model.scale.values(codes))


def config_of(algorithm: str, model: SharedModel) -> Config:
    """As the panel has it: a run's own settings for its own preset, and its columns for another."""
    if algorithm == model.config.algorithm:
        return model.config
    return with_columns_of(preset(algorithm), model.config)


def message_of(model: SharedModel, config: Config) -> Broadcast:
    """The broadcast of the round after the run's last, at its quantised rows."""
    columns = config.model.columns
    V = model.V[:, :columns]
    features = encode_items(V, model.public, config)
    return Broadcast(model.config.server.rounds, V, np.zeros_like(V), np.zeros((0, columns)), features, model.public)


def device_at(model: SharedModel, config: Config, message: Broadcast, items: Any, ratings: Any) -> Device:
    """A newcomer's device."""
    rule, U = config.model, np.zeros(0)
    if config.model.rule in ("mf", "biased-mf"):
        U = rule.fold_in(rule.item_columns(message.V, model.public), items, ratings, model.public)
    return Device(0, items, ratings, model.scale.standard_step, U, SECRET)


def python_upload(model: SharedModel, config: Config, items: Any, ratings: Any) -> Upload:
    """What the client step makes of these ratings; without the client's own weight, which needs the last step."""
    message = message_of(model, config)
    device = device_at(model, config, message, items, ratings)
    if config.aggregation.weighs_on_client:
        options = config.aggregation.with_settings(weigh_on="server")
        config = replace(config, aggregation=options)
    return client_round(message, device, config)[0]
