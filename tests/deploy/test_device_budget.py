"""What noised sums may cost a person: bounded for one task and for life, by the device, under whatever name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer, spent
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server.statistics import before_first_round
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from tests.deploy.in_process import MODEL, InProcessLink, change_terms, serve
from tests.deploy.summing import secure_config
from tests.deploy.test_budget import RATINGS, begun, budget_config
from tests.deploy.test_pinned_sums import with_pins

CATALOGUE = ItemCatalogue.published(RATINGS)


def statistics_request(epsilon: float, model: str = MODEL, pinned: bool = False, delta: float = 1e-3) -> Packet:
    own = {"statistics__source": "secure-sum", "statistics__epsilon": epsilon, "statistics__delta": delta}
    config, state = secure_config(**own), before_first_round(CATALOGUE)
    return encode_request(model, state, config, CATALOGUE, attach=True, session=b"s" * 16, pinned=pinned)


def policy(home: NodeHome, *demands: str) -> None:
    assert exit_code_of(["device", "policy", *demands, "--home", str(home.path)]) == 0


def spent_at(home: NodeHome) -> float:
    with Store.open(home.store) as store:
        return spent(store)


def test_a_task_that_costs_more_than_the_owner_allows_is_refused_pinned_or_not(tmp_path: Path) -> None:
    homes = begun(tmp_path, secure_config())
    with_pins(homes, homes[:1])
    for home, pinned in ((homes[0], True), (homes[1], False)):
        assert answer(statistics_request(1000.0, pinned=pinned), home.store).facts["refusal"] == "policy"
        assert answer(statistics_request(2.0, pinned=pinned, delta=0.1), home.store).facts["refusal"] == "policy"
        assert "refusal" not in answer(statistics_request(2.0, "aa", pinned), home.store).facts
        policy(home, "--largest-epsilon", "1")
        assert answer(statistics_request(2.0, "bb", pinned), home.store).facts["refusal"] == "policy"


@pytest.mark.parametrize("rule", ["none", "distributed", "central"])
def test_what_tasks_cost_adds_up_whatever_the_server_calls_them(rule: str, tmp_path: Path) -> None:
    own = {"statistics__source": "secure-sum", "statistics__epsilon": 8.0, "statistics__delta": 1e-3}
    config = secure_config(**own) if rule == "none" else budget_config("secure-sum", privacy__rule=rule)
    homes = begun(tmp_path, config)
    assert spent_at(homes[0]) == 0.0
    serve(InProcessLink(homes), tmp_path / "run")
    assert spent_at(homes[0]) == pytest.approx(8.0), "statistics and all rounds, once"
    policy(homes[0], "--lifetime-epsilon", "15")
    for name in ("aa", "bb"):
        assert answer(statistics_request(8.0, name), homes[0].store).facts["refusal"] == "policy", "another name"
        assert "refusal" not in answer(statistics_request(8.0, name), homes[1].store).facts


def test_a_vector_that_is_given_again_with_other_noise_costs_again(tmp_path: Path) -> None:
    homes = begun(tmp_path, budget_config(privacy__rule="distributed"))
    lost = list[int]()

    def vanish(node: int, packet: Packet) -> Packet | None:
        """All vectors of the first try arrive, and the server says that none did."""
        if packet.facts.get("stage") == "mask" and len(lost) < 4:
            lost.append(node)
            return None if node > 1 else packet
        return packet

    change_terms(tmp_path / "run", deadline=1.0)
    serve(InProcessLink(homes, vanish), tmp_path / "run")
    assert spent_at(homes[0]) > 8.0
    with Store.open(homes[0].store) as store:
        rows = store.connection.execute("SELECT release, epsilon FROM ledger").fetchall()
    assert [release for release, _ in rows] == [0, 0, 1]
    assert rows[0][1] == 8.0
    assert 0.0 < rows[1][1] < 8.0, "one release by itself"
    assert rows[2][1] == 0.0, "within the task"


def test_the_owner_sees_what_was_spent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    homes = begun(tmp_path, budget_config(privacy__rule="distributed"))
    serve(InProcessLink(homes), tmp_path / "run")
    capsys.readouterr()
    assert exit_code_of(["device", "status", "--home", str(homes[0].path)]) == 0
    told = capsys.readouterr().out
    assert "noised sums have cost ε = 8 so far" in told
    assert "noised sums of ε = 10 a task at most, and 30 for life" in told
