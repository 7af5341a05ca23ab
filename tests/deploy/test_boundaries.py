"""Who imports whom within ``deploy``, what a server may make a node run, and what we use of Flower's private parts."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w

from fedrecplus import deploy
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.flower import private
from fedrecplus.deploy.server import Journal, serve
from fedrecplus.deploy.wire import ItemCatalogue, Packet, Refusal, decode_request, encode_request
from fedrecplus.errors import UserError
from fedrecplus.parts import KINDS
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, InProcessLink, prepared, small_config
from tests.small_data import small_ratings

HOUSE = Path(deploy.__file__).parent
BELOW = {
    "wire": set[str](),
    "device": {"wire"},
    "server": {"wire"},
    "light": {"wire", "device"},
    "process": {"wire", "device", "light", "server"},
    "flower": {"wire", "device", "server", "light", "process"},
}
"""sub-package → those it may import"""
PROMISED = ("flwr.app", "flwr.clientapp", "flwr.serverapp")
"""Flower's public modules; all else is listed in ``flower/private.py``"""


def imports_of(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", BELOW)
def test_sub_packages_know_only_those_below_and_only_by_their_front_doors(package: str) -> None:
    for file in (HOUSE / package).glob("*.py"):
        for name in imports_of(file):
            if name.startswith("flwr"):
                assert package == "flower", f"{file} imports {name}"
                assert name.startswith(PROMISED), f"{file}: list {name} in private.py"
            parts = name.split(".")
            if parts[:2] == ["fedrecplus", "deploy"] and parts[2] != package:
                assert parts[2] in BELOW[package], f"{file} imports {name}"
                front = importlib.import_module(".".join(parts[:3]))
                assert set(parts[3:4]) <= set(front.__all__), f"{file} reaches behind the front door: {name}"


def is_there(place: str) -> bool:
    try:
        return private.get(place) is not None
    except (ImportError, AttributeError):
        return False


def test_flowers_private_parts_are_where_they_were() -> None:
    """Says by name what an upgrade of Flower moved."""
    assert [place for place in private.PLACES if not is_there(place)] == []
    programs = [place for place in private.PLACES if place.rpartition(".")[2].startswith("flower_")]
    assert [callable(private.get(place)) for place in programs] == [True] * 2, "functions, not modules of their names"
    source = {name: inspect.getsource(importlib.import_module(name)) for name in _TEXTS}
    assert [text for name, texts in _TEXTS.items() for text in texts if text not in source[name]] == []


_TEXTS = {
    "flwr.superlink.grid.http_grid": ["self._client = "],
    "flwr.supernode.fleet_http_client": ['"/v1/fleet/'],
    "flwr.common.constant": ['"FLWR_HOME"'],
    "flwr.supercore.constant": [
        '"FLWR_DISABLE_UPDATE_CHECK"',
        '"flwr-task-token"',
        '"flwr-public-key"',
        '"flwr-signature"',
    ],
    "flwr.supercore.cli.flower_superexec": ["--parent-pid", "superexec_auth_secret"],
    "flwr.superlink.routers.fleet.node_auth": ["FLEET_HTTP_PUBLIC_KEY_HEADER", "timestamp.encode"],
    "flwr.supercore.telemetry": ['"FLWR_TELEMETRY_ENABLED"'],
}
"""what has no name to look up: literals that we rely on"""


def naming_outside(honest: Packet, kind: str) -> Packet:
    """The same request with a rule that doesn't come with the package."""
    tables = tomllib.loads(str(honest.facts["config"]))
    tables[kind] = {"rule": "outside_package.rule"}
    return Packet({**honest.facts, "config": tomli_w.dumps(tables)}, honest.arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_imports_nothing_because_a_server_says_so(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside_package").mkdir()
    for name in ("__init__", "rule"):
        (tmp_path / "outside_package" / f"{name}.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    path, catalogue = tmp_path / "device" / "store.db", ItemCatalogue.of(small_ratings())
    Store.create(path, Scale(1.0, 5.0, 1.0))
    state = start_server(small_config(), catalogue.public)
    request = naming_outside(encode_request(MODEL, state, small_config(), catalogue, attach=True), kind)
    assert answer(request, path).facts["refusal"] == "rule"
    assert "outside_package" not in sys.modules
    with Store.open(path) as store:
        assert store.sent() == []
    for allowed in ([], ["another.rule", "outside_package"]):
        with pytest.raises(Refusal, match=r"'outside_package\.rule' would run code(.|\n)*--allow-rule"):
            decode_request(request, allowed)
    with pytest.raises(Refusal, match="RuntimeError: imported"):
        decode_request(request, ["outside_package.rule"])


def test_a_server_that_names_an_outside_rule_is_told_so_and_no_node_is_blamed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    link = InProcessLink(prepared(tmp_path, small_ratings(), small_config(), nodes=1, patience=0.3))
    ask = link.ask

    def outside(packets: dict[int, Packet], seconds: float) -> dict[str, int]:
        return ask({node: naming_outside(packet, "pseudo_items") for node, packet in packets.items()}, seconds)

    link.ask = outside  # type: ignore[method-assign]
    with pytest.raises(UserError, match="no upload came"):
        serve(link, tmp_path / "run")
    assert "node-rule" in caplog.text
    assert "--allow-rule" in caplog.text, "in the node's own log"
    assert Journal(tmp_path / "run").progress()["phase"] == "failed"


def test_a_node_lets_in_what_its_owner_said_when_it_joined_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedrecplus.cli.node.run", lambda *_, **__: None)
    home = ["--home", str(tmp_path)]
    assert exit_code_of(["device", "init", *home]) == 0
    for allowed in (["my.rule", "your.rule"], ["my.rule"], []):
        options = [word for name in allowed for word in ("--allow-rule", name)]
        assert exit_code_of(["node", "join", "127.0.0.1:9092", "--insecure", *options, *home]) == 0
        with Store.open(tmp_path / "store.db") as store:
            assert store.allowed_rules == allowed
