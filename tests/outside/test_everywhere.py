"""A part in one file, with nothing else changed, is run by every engine, in secure sums, under noise and deployed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("sqlalchemy")

from fedrecplus.audit.audit import AuditCase, AuditExtent, audit_case
from fedrecplus.config import check
from fedrecplus.data import split
from fedrecplus.deploy.device import Store, load_policy, recommend, save_policy
from fedrecplus.engines import prepare
from fedrecplus.errors import UserError
from fedrecplus.testing import small_ratings
from fedrecplus.testing.example import state_after
from fedrecplus.training import Recommender
from tests.deploy.in_process import InProcessLink, prepared, serve
from tests.outside.everywhere import PARTS, SECURE, WAYS, config_of

pytestmark = pytest.mark.whole
ROOT = Path(__file__).parents[2]
RATINGS = small_ratings(clients=16, items=30)
REFUSED = {
    ("neural", "numpy"): r"NumPy alone(.|\n)*fedrecplus\[torch\]",
    ("aggregation", "noise for people"): "releases Σ wΔ alone",
}
"""what must not be: gradients without torch, and weights that no budget covers"""


PAIRS = [(part, way) for part in PARTS for way in WAYS if (part, way) != ("channel", "secure sums")]


@pytest.mark.parametrize(("part", "way"), PAIRS)
def test_one_file_is_run_in_every_way(part: str, way: str) -> None:
    config = config_of(part, *WAYS[way], "server.rounds=2")
    if (part, way) in REFUSED:
        with pytest.raises(UserError, match=REFUSED[part, way]):
            prepare(RATINGS, config)
        return
    problem = prepare(RATINGS, config)
    start, state = (state_after(problem, rounds, config.engine) for rounds in (0, 2))
    for before, after in ((start.server.V, state.server.V), (start.server.dense, state.server.dense)):
        assert np.isfinite(after).all()
        assert (before != after).any() or not before.size


def test_a_place_without_torch_refuses_a_neural_model_and_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of("neural")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"not installed(.|\n)*fedrecplus\[torch\]"):
        check(config)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cuda", "ray"])
def test_one_file_is_run_on_a_card_and_in_a_cluster(engine: str, my_rules: Path) -> None:
    """In torch, by Triton's interpreter where there is no card, and on the workers of Ray: as by the fast engine."""
    surroundings = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(my_rules), *sys.path])}
    command = [sys.executable, "-m", "tests.outside.elsewhere", engine]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    distances = json.loads(done.stdout)[engine]
    assert set(distances) == set(PARTS)
    assert max(distances.values()) < 1e-10


def audited(part: str, *attacks: str) -> list[dict[str, Any]]:
    config = config_of(part, "server.rounds=3", "simulation_only=true", "channel.rule=clear")
    extent = AuditExtent(rounds=2, users=4, attacks=attacks)
    return audit_case(AuditCase(part, check(config)), *split(RATINGS, 0), extent)


@pytest.mark.parametrize("part", PARTS)
def test_one_file_is_audited_by_an_attack_from_outside(part: str) -> None:
    (row,) = audited(part, "my_rules.my_attack")
    assert 0.0 <= row["auc"] <= 1.0


@pytest.mark.slow
def test_every_attack_bears_a_model_that_says_nothing_of_its_uploads() -> None:
    assert len({row["attack"] for row in audited("neural")}) > 10


@pytest.mark.parametrize("part", PARTS)
def test_one_file_is_deployed_where_owners_allow_it(part: str, tmp_path: Path) -> None:
    clear = () if part in ("neural", "aggregation") else ("channel.rule=clear",)
    config = config_of(part, *(clear or SECURE), "aggregation.weigh_on=client", "server.rounds=2")
    config = replace(config, simulation_only=False, seeded_noise=False)
    homes = prepared(tmp_path, RATINGS, config, nodes=4, patience=9)
    rule = next(each.partition("=")[2] for each in PARTS[part] if "my_rules" in each)
    for home in homes:
        with Store.open(home.store) as store:
            store.allow_rules([rule])
            if part == "channel":
                with store.changing():
                    save_policy(store, msgspec.structs.replace(load_policy(store), channels=(rule,)))
    serve(InProcessLink(homes), tmp_path / "run")
    state = state_after(prepare(RATINGS, config), 2, config.engine)
    model = Recommender.load(tmp_path / "run", allow=[rule]).model
    np.testing.assert_allclose(model.V, state.server.V, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.dense, state.server.dense, rtol=0, atol=1e-9)
    with Store.open(homes[0].store) as store:
        assert len(recommend(store, min(store.ratings()), 3, None)) == 3, "by what the device itself has kept"
