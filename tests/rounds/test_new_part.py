"""A newcomer adds a rule with one file: discovery finds it, the config takes it, both engines run it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedrecplus import parts
from fedrecplus.config import assign, check, dumps, loads
from fedrecplus.errors import UserError
from tests.contracts.one_round import RATINGS, START
from tests.rounds.engines import ENGINES, run_rounds

NEW_FILES = {
    "pseudo_items": """
import numpy as np

def select(count, device, broadcast, settings):
    "The unrated items with the highest numbers. Ours: a test."
    return np.setdiff1d(np.arange(len(broadcast.V)), device.items)[-count:] if count else np.empty(0, np.int64)
""",
    "encoders": """
def encode(V, public):
    "E = V². Ours: a test."
    return V**2
""",
    "virtual_ratings": """
import numpy as np

def fill(items, device, broadcast, settings):
    "The client's highest rating. Ours: a test."
    return np.full(len(items), device.ratings.max())
""",
    "aggregation": """
import numpy as np

def aggregate(uploads, shape, settings):
    "The median per item. Ours: a test."
    table = np.zeros(shape)
    for item in range(shape[0]):
        rows = [upload.delta[upload.items == item] for upload in uploads]
        rows = np.concatenate(rows) if rows else np.empty((0, shape[1]))
        if len(rows):
            table[item] = np.median(rows, axis=0)
    return table
""",
    "server_steps": """
import numpy as np

MOMENTS = 1

def step(aggregate, moments, settings, round_number):
    "The sign alone. Ours: a test."
    return settings.learning_rate * np.sign(aggregate), [moments[0] + 1.0]
""",
}
SETTING = {
    "pseudo_items": "pseudo_items.rule",
    "encoders": "pseudo_items.encoder",
    "virtual_ratings": "virtual_ratings.rule",
    "aggregation": "aggregation.rule",
    "server_steps": "server.step",
}


@pytest.fixture(params=NEW_FILES)
def room(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A room with one file more, brand_new.py, for as long as the test runs."""
    name: str = request.param
    (tmp_path / "brand_new.py").write_text(NEW_FILES[name])
    package = importlib.import_module(f"fedrecplus.{name}")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    parts.choices.cache_clear()
    parts.part.cache_clear()
    yield name
    sys.modules.pop(f"fedrecplus.{name}.brand_new", None)
    package.__dict__.pop("brand_new", None)
    parts.choices.cache_clear()
    parts.part.cache_clear()


def test_one_file_is_found_configured_and_run_by_both_engines(room: str) -> None:
    assert "brand-new" in parts.choices(room)
    changes = ["pseudo_items.rule=similar", "virtual_ratings.rule=nearest", "server.learning_rate=0.1"]
    usual = assign(START, changes)
    config = check(assign(usual, [f"{SETTING[room]}=brand-new"]))
    assert loads(dumps(config)) == config
    reference = run_rounds(RATINGS, config, "reference", rounds=3)[-1]
    quick = run_rounds(RATINGS, config, "fast", rounds=3)[-1]
    for name, table in reference.arrays().items():
        np.testing.assert_allclose(quick.arrays()[name], table, rtol=0, atol=1e-9, err_msg=name)
    before = run_rounds(RATINGS, usual, "reference", rounds=3)[-1]
    assert np.abs(before.server.V - reference.server.V).max() > 1e-6
    single = run_rounds(RATINGS, config, "fast", rounds=2, dtype=np.float32)[-1]
    assert single.server.V.dtype == np.float32


def test_a_misspelt_name_is_told_the_new_one(room: str) -> None:
    with pytest.raises(UserError, match="did you mean 'brand-new'"):
        check(assign(START, [f"{SETTING[room]}=brand-nw"]))


@pytest.mark.parametrize("room", ["aggregation"], indirect=True)
def test_a_rule_that_needs_all_uploads_does_not_let_clients_weigh_themselves(room: str) -> None:
    with pytest.raises(UserError, match="no client can weigh itself"):
        check(assign(START, [f"{SETTING[room]}=brand-new", "aggregation.weigh_on=client"]))


def test_it_is_gone_afterwards() -> None:
    assert all("brand-new" not in parts.choices(room) for room in NEW_FILES)
    assert set(ENGINES) == {"reference", "fast"}
