"""Who imports whom within ``deploy``, and what a server may make a node run."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

import pytest
import tomli_w

from fedrecplus import deploy
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import decode_request, encode_request
from fedrecplus.errors import UserError
from fedrecplus.parts import KINDS
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, InProcessLink, prepared, serve, small_config, stored
from tests.small_data import small_ratings

HOUSE = Path(deploy.__file__).parent
BELOW = {
    "wire": set[str](),
    "device": {"wire"},
    "server": {"wire"},
    "node": {"wire", "device"},
    "http": {"wire", "server"},
    "operate": {"wire", "device", "node", "server", "http"},
}
"""sub-package → those it may import"""


def imports_of(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", BELOW)
def test_sub_packages_know_only_those_below(package: str) -> None:
    for file in (HOUSE / package).rglob("*.py"):
        for name in imports_of(file):
            parts = name.split(".")
            if parts[:2] == ["fedrecplus", "deploy"] and parts[2] != package:
                assert parts[2] in BELOW[package], f"{file} imports {name}"
    assert set(BELOW) == {folder.name for folder in HOUSE.iterdir() if (folder / "__init__.py").exists()}


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

    def outside(packets: dict[int, Packet], seconds: float) -> dict[int, int]:
        return ask({node: naming_outside(packet, "pseudo_items") for node, packet in packets.items()}, seconds)

    link.ask = outside  # type: ignore[method-assign]
    with pytest.raises(UserError, match="no upload came"):
        serve(link, tmp_path / "run")
    assert "node-rule" in caplog.text
    assert "--allow-rule" in caplog.text, "in the node's own log"
    assert stored(tmp_path / "run").progress()["phase"] == "failed"


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
