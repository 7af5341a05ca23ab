"""``fedrecplus cluster``: how to start one, and that there is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedrecplus.cli.cluster import HOW, cluster_app
from fedrecplus.engines.ray.connection import IN_MEMORY, WORKERS
from fedrecplus.errors import UserError

COMPOSE = Path(__file__).parents[2] / "examples/cluster/compose.yaml"


def test_it_shows_how_to_start_with_files_and_variables_that_there_are() -> None:
    shown = CliRunner().invoke(cluster_app, [], catch_exceptions=False).output
    assert "ray start --head" in shown
    assert {WORKERS, IN_MEMORY} <= set(re.findall(r"FEDRECPLUS_\w+", shown))
    assert COMPOSE.relative_to(COMPOSE.parents[2]).as_posix() in HOW
    assert COMPOSE.exists()
    assert "ports:" not in COMPOSE.read_text()  # nothing is published to other machines


def test_where_there_is_no_cluster_the_remedy_is_named() -> None:
    with pytest.raises(UserError, match="no Ray cluster at") as error:
        CliRunner().invoke(cluster_app, ["status", "--address", "127.0.0.1:1"], catch_exceptions=False)
    assert "fedrecplus cluster" in error.value.remedy
