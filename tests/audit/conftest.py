"""A small town: two tastes, a few famous items, genres that go with the tastes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from fedrecplus.audit.recording import Recording, record
from fedrecplus.config import Config, assign, preset
from fedrecplus.data import Catalogue, Ratings, Scale
from fedrecplus.engines import Problem, prepare

CLIENTS, ITEMS, RATED = 60, 120, 20


def small_town(seed: int = 0, clients: int = CLIENTS) -> Ratings:
    random = np.random.default_rng(seed)
    taste_of_item = np.arange(ITEMS) % 2
    fame = 1.0 / (1.0 + random.permutation(ITEMS) / 12.0)
    quality = random.normal(0.0, 0.6, ITEMS)
    indptr, items, codes = [0], [], []
    for client in range(clients):
        liked = np.where(taste_of_item == client % 2, 1.0, 0.12)
        chosen = np.sort(random.choice(ITEMS, RATED, replace=False, p=fame * liked / (fame * liked).sum()))
        values = 3.3 + quality[chosen] + 0.8 * (liked[chosen] - 0.5) + random.normal(0.0, 0.8, RATED)
        items += chosen.tolist()
        codes += np.clip(np.rint(values) - 1, 0, 4).astype(int).tolist()
        indptr.append(len(items))
    genres = np.zeros((ITEMS, 12), dtype=bool)
    genres[np.arange(ITEMS), 6 * taste_of_item + random.integers(6, size=ITEMS)] = True
    catalogue = Catalogue(
        ("",) * ITEMS, random.integers(1950, 2000, ITEMS).astype(np.int16), genres, tuple("abcdefghijkl")
    )
    return Ratings(
        "small town",
        Scale(1, 5, 1),
        np.array(indptr),
        np.array(items, dtype=np.uint16),
        np.array(codes, dtype=np.uint8),
        np.arange(clients),
        np.arange(ITEMS),
        catalogue,
        listed=True,
    )


def small_problem(scheme: str, *settings: str) -> Problem:
    config = assign(preset(scheme), ["precision=float64", "model.factors=6", "server.rounds=14", *settings])
    return prepare(small_town(), replace(config, algorithm=scheme, engine="fast"))


@pytest.fixture(scope="session")
def recorded():
    """Train a scheme on the small town and take notes, once per scheme and settings."""

    @cache
    def record_once(scheme: str, *settings: str) -> tuple[Recording, Config]:
        problem = small_problem(scheme, *settings)
        return record(problem, 12, users=30), problem.config

    return record_once


@pytest.fixture
def package_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts a package of somebody else on the path, by the texts of its modules."""

    def write(name: str, **modules: str) -> None:
        (tmp_path / name).mkdir()
        for module, text in {"__init__": "", **modules}.items():
            (tmp_path / name / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)

    return write


def command_output(patch: pytest.MonkeyPatch, *arguments: str, ratings: Ratings | None = None) -> str:
    """What ``fedrecplus audit`` prints, of the small town or of other ratings."""
    command = pytest.importorskip("fedrecplus.cli.audit")
    patch.setattr(command.shared, "load_with_bar", lambda *_: small_town() if ratings is None else ratings)
    app = typer.Typer()
    app.command()(command.audit_command)
    found = CliRunner().invoke(app, [*arguments, "--dataset", "x", "--workers", "1"], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def command_json(folder: Path, patch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """What it writes, of few rounds and people."""
    out = folder / "leaks.json"
    command_output(patch, *arguments, "--rounds", "3", "--users", "5", "--json", str(out))
    content: dict[str, Any] = json.loads(out.read_text())
    return content
