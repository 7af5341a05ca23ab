"""The CUDA engine gives what the reference gives: its kernels in Triton's interpreter, where there is no card."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import card
from fedrecplus.config import Config, preset, presets
from fedrecplus.engines import cuda, engine_of
from fedrecplus.engines.fast import FastEngine
from fedrecplus.errors import UserError

ROOT = Path(__file__).parents[2]
QUICK = [
    "auto", "any order", "any order, distances", "on the processor", "same bits", "lazy state", "fedmf", "fedrec++",
    "server on the card", "state of others", "chosen by V", "batches of rows", "told the order",
]  # fmt: skip
SLOW = [
    *(name for name in presets() if preset(name).engine != "central" and name not in QUICK),
    "biases", "weighted neighbours", "large steps", "svdpp", "ials", "ring", "ring of 16 bits", "half a cohort",
    "long clients",
]  # fmt: skip


def outcomes(names: list[str]) -> dict[str, str | None]:
    """Case → what went wrong, if anything; all in one process, in which Triton interprets."""
    command = [sys.executable, "-m", "tests.engines.cuda_cases", *names]
    surroundings = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["case"] for each in found] == names, done.stderr
    return {each["case"]: each["error"] for each in found}


def test_kernels_give_what_the_reference_gives() -> None:
    wrong = {name: error for name, error in outcomes(QUICK).items() if error is not None}
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


@pytest.mark.slow
def test_kernels_of_every_preset_give_what_the_reference_gives() -> None:
    wrong = {name: error for name, error in outcomes(SLOW).items() if error is not None}
    assert not wrong, "\n".join(f"{name}: {error}" for name, error in wrong.items())


@pytest.mark.slow
def test_kernels_compile_for_a_card_that_need_not_be_there(tmp_path: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    surroundings["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-m", "tests.engines.cuda_compiled"]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "train_clients",
        "train_clients",
        "train_long",
        "add_rows",
        "add_in_order",
        "weigh_clients",
    ]


def without_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine with torch and without a card, whatever this one has."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    torch = importlib.import_module("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_without_a_card_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    without_card(monkeypatch)
    with pytest.raises(UserError, match="needs an NVIDIA card") as error:
        engine_of(replace(Config(), engine="cuda"))
    assert "engine=auto" in error.value.remedy


def test_without_a_card_the_bench_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_card(monkeypatch)
    lines = card.measure()
    assert [line.value for line in lines] == [None]
    assert capsys.readouterr().err == "cuda: there is no card here that torch can use: left out\n"


def test_without_torch_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "_installed", lambda: False)
    with pytest.raises(UserError, match="torch and triton") as error:
        engine_of(replace(Config(), engine="cuda"))
    assert "fedrecplus[cuda]" in error.value.remedy
    assert isinstance(engine_of(replace(Config(), engine="auto")), FastEngine)


def test_auto_takes_the_processor_where_there_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    without_card(monkeypatch)
    assert isinstance(engine_of(replace(Config(), engine="auto")), FastEngine)
