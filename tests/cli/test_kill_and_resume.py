"""A real process, really killed: the folder it leaves goes on to the very same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.training import RunFolder
from tests.waiting import GIVE_UP

TRAIN = ["train", "--dataset", "ratings.csv", "--algorithm", "fedrec+private", "--set", "server.rounds=50"]
TRAIN += ["--set", "evaluation.every=10"]
COMMAND = "from fedrecplus.cli.main import run\nrun()\n"

# The signal is real, but the process sends it to itself: how far it is when another one's arrives is a matter of time.
BETWEEN_CHECKPOINTS = f"""
import os, signal
from fedrecplus.training.run_folder import RunFolder
add, save, saved = RunFolder.add_metrics, RunFolder.save_checkpoint, []
def save_and_note(self, checkpoint):
    save(self, checkpoint)
    saved.append(checkpoint)
def add_and_die(self, line):
    add(self, line)
    if saved:
        os.kill(os.getpid(), signal.SIGKILL)
RunFolder.add_metrics, RunFolder.save_checkpoint = add_and_die, save_and_note
{COMMAND}"""
CTRL_C = f"""
import os, signal
from fedrecplus.training.run_folder import RunFolder
add = RunFolder.add_metrics
def add_and_interrupt(self, line):
    add(self, line)
    os.kill(os.getpid(), signal.SIGINT)
RunFolder.add_metrics = add_and_interrupt
{COMMAND}"""


def start(*arguments: str, code: str = COMMAND) -> subprocess.Popen[str]:
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stderr=subprocess.PIPE, text=True, env=environment
    )


def kill_between_checkpoints(folder: Path, *arguments: str) -> None:
    """Rounds that a checkpoint has, and a line of metrics that comes after the last one."""
    process = start(*arguments, "--out", str(folder), "--checkpoint-seconds", "0", code=BETWEEN_CHECKPOINTS)
    told = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, told


def rounds_of(folder: Path) -> list[int]:
    return [line["round"] for line in RunFolder(folder).metrics()]


def assert_same_run(one: Path, other: Path) -> None:
    figures = []
    for folder in (one, other):
        result = {**json.loads((folder / "result.json").read_text()), "made": None, "seconds": 0}
        figures.append([result, *({**line, "seconds": 0} for line in RunFolder(folder).metrics())])
    assert figures[0] == figures[1]
    for file in ("model.safetensors", "clients.safetensors", "config.toml"):
        assert (one / file).read_bytes() == (other / file).read_bytes()


@pytest.fixture
def whole(here: Path) -> Path:
    assert exit_code_of([*TRAIN, "--out", "whole"]) == 0
    return here / "whole"


def test_a_killed_run_resumes_to_the_same_bits(whole: Path, here: Path) -> None:
    folder = here / "parts"
    kill_between_checkpoints(folder, *TRAIN)
    assert rounds_of(folder) == [1, 10]
    kill_between_checkpoints(folder, "train", "--resume")
    assert rounds_of(folder) == [1, 10, 20]
    assert not (folder / "result.json").exists()
    assert exit_code_of(["train", "--resume", "--out", str(folder)]) == 0
    assert_same_run(whole, folder)
    assert not list(folder.glob("*checkpoint*"))
    assert not list(folder.glob(".*.part"))


def test_ctrl_c_says_how_to_go_on_and_going_on_gives_the_same_bits(whole: Path, here: Path) -> None:
    folder = here / "parts"
    process = start(*TRAIN, "--out", str(folder), code=CTRL_C)
    told = process.communicate()[1]
    assert process.returncode == 130
    assert f"fedrecplus train --resume --out {folder}" in told
    assert "Traceback" not in told
    assert (folder / "checkpoint.safetensors").exists()
    assert exit_code_of(["train", "--resume", "--out", str(folder)]) == 0
    assert_same_run(whole, folder)


def test_two_processes_give_the_same_bits_and_an_error_has_no_traceback(here: Path) -> None:
    short = [*TRAIN, "--set", "server.rounds=5"]
    processes = [start(*short, "--out", str(here / name)) for name in ("one", "two")]
    assert [process.communicate()[1] is not None and process.returncode for process in processes] == [0, 0]
    assert_same_run(here / "one", here / "two")
    refused = start(*short, "--out", str(here / "one"))
    told = refused.communicate()[1]
    assert refused.returncode == 2
    assert told.startswith("error: ")
    assert "Traceback" not in told


def test_ctrl_c_before_the_first_round_is_answered_in_a_word() -> None:
    interrupting = f"""
import os, signal
import fedrecplus.training
def choose(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
fedrecplus.training.choose = choose
signal.signal(signal.SIGINT, signal.default_int_handler)
{COMMAND}"""
    process = start("train", "--dataset", "synthetic:clients=20,items=20,ratings_per_client=5", code=interrupting)
    assert process.communicate(timeout=GIVE_UP)[1].splitlines()[1:] == ["stopped"]  # below that a choice is made
    assert process.returncode == 130


def test_ctrl_c_while_the_command_is_imported_leaves_no_traceback() -> None:
    interrupted = """
import os, signal, sys
class Import:
    def find_spec(self, name, *_):
        if name == "fedrecplus.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
sys.meta_path.insert(0, Import())
signal.signal(signal.SIGINT, signal.default_int_handler)
from fedrecplus.__main__ import main
main()
"""
    process = start(code=interrupted)
    assert process.communicate(timeout=GIVE_UP)[1] == ""
    assert process.returncode == 130
