"""A real process, really killed: the folder it leaves goes on to the very same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of

ROUNDS = 2500
TRAIN = ["train", "--dataset", "ratings.csv", "--algorithm", "fedrec+private", "--set", f"server.rounds={ROUNDS}"]
TRAIN += ["--set", "evaluation.every=40"]
COMMAND = [sys.executable, "-m", "fedrecplus"]


def start(*arguments: str) -> subprocess.Popen[str]:
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True, env=environment)


def changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.exists() and file.stat().st_size else 0


def wait_for_change(file: Path, before: int, process: subprocess.Popen[str], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while changed(file) == before:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, f"no news of {file} after {seconds} s"
        time.sleep(0.005)


def kill_at_next_checkpoint(folder: Path, *arguments: str) -> None:
    checkpoint = folder / "checkpoint.safetensors"
    before = changed(checkpoint)
    process = start(*arguments, "--out", str(folder), "--checkpoint-seconds", "0.1")
    wait_for_change(checkpoint, before, process)
    process.kill()
    process.communicate()


def same_run(one: Path, other: Path) -> bool:
    results = [json.loads((folder / "result.json").read_text()) for folder in (one, other)]
    lines = [
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()] for folder in (one, other)
    ]
    for result in results:
        del result["made"]
    for timed in (*results, *lines[0], *lines[1]):
        del timed["seconds"]
    files = ("model.safetensors", "clients.safetensors", "config.toml")
    return (
        results[0] == results[1]
        and lines[0] == lines[1]
        and all((one / file).read_bytes() == (other / file).read_bytes() for file in files)
    )


@pytest.fixture
def whole(here: Path) -> Path:
    assert exit_code_of([*TRAIN, "--out", "whole"]) == 0
    return here / "whole"


def test_a_killed_run_resumes_to_the_same_bits(whole: Path, here: Path) -> None:
    folder = here / "parts"
    kill_at_next_checkpoint(folder, *TRAIN)
    kill_at_next_checkpoint(folder, "train", "--resume")
    assert not (folder / "result.json").exists()
    assert exit_code_of(["train", "--resume", "--out", str(folder)]) == 0
    assert same_run(whole, folder)
    assert not list(folder.glob("*checkpoint*"))
    assert not list(folder.glob(".*.part"))


def test_ctrl_c_says_how_to_go_on_and_going_on_gives_the_same_bits(whole: Path, here: Path) -> None:
    folder = here / "parts"
    process = start(*TRAIN, "--out", str(folder))
    wait_for_change(folder / "metrics.jsonl", 0, process)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert f"fedrecplus train --resume --out {folder}" in told
    assert "Traceback" not in told
    assert (folder / "checkpoint.safetensors").exists()
    assert exit_code_of(["train", "--resume", "--out", str(folder)]) == 0
    assert same_run(whole, folder)


def test_two_processes_give_the_same_bits_and_an_error_has_no_traceback(here: Path) -> None:
    short = [*TRAIN, "--set", "server.rounds=5"]
    processes = [start(*short, "--out", str(here / name)) for name in ("one", "two")]
    assert [process.communicate()[1] is not None and process.returncode for process in processes] == [0, 0]
    assert same_run(here / "one", here / "two")
    refused = start(*short, "--out", str(here / "one"))
    told = refused.communicate()[1]
    assert refused.returncode == 2
    assert told.startswith("error: ")
    assert "Traceback" not in told
