"""The server's registry: what was trained is published there, and nodes that join get what is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.deploy.test_gate import Running
from tests.small_data import small_ratings


def test_nodes_that_join_get_what_the_registry_has_and_after_a_rollback_the_model_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Running(tmp_path / "server")
    place, fetched = ["--server", "--home", str(server.home.path)], []
    assert exit_code_of(["models", *place]) == 0
    assert "has no models" in capsys.readouterr().out
    try:
        for rounds in (1, 2):
            folder = tmp_path / str(rounds)
            serve(
                InProcessLink(prepared(folder, small_ratings(), small_config(rounds=rounds), nodes=1)), folder / "run"
            )
            assert exit_code_of(["publish", str(folder / "run"), *place]) == 0
        capsys.readouterr()
        assert exit_code_of(["models", *place]) == 0
        shown = capsys.readouterr().out
        assert shown.count("fedrec+private") == 2
        for name in ("now", "before"):
            link = server.home.invite(name, 1.0)
            assert exit_code_of(["join", str(link), "--leave", "--home", str(tmp_path / name)]) == 0
            fetched.append((tmp_path / name / "model" / "model.safetensors").read_bytes())
            assert exit_code_of(["rollback", *place]) == (0 if name == "now" else 2)
        for one, rounds in zip(fetched, (2, 1), strict=True):
            assert one == (tmp_path / str(rounds) / "run" / "model.safetensors").read_bytes()
    finally:
        server.process.end(2.0)
