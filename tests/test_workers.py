"""Tasks side by side: all results, the cores shared, and nobody left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrecplus.errors import UserError
from fedrecplus.workers import THREADS, Stop, Tell, core_count, run_tasks, worker_count
from tests.waiting import GIVE_UP, wait_until

SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests in the background ignores it
from fedrecplus.workers import run_tasks
from tests.test_workers import square, pid_and_wait
work, tasks = (square, [3, 4]) if sys.argv[1] == "square" else (pid_and_wait, [sys.argv[2]] * 2)
print(sorted(run_tasks(work, tasks, 2)), flush=True)
"""


def square(task: int, tell: Tell, _: Stop) -> int:
    tell(f"{task} squared")
    return task * task


def threads_of(_: int, __: Tell, ___: Stop) -> tuple[str, str]:
    return os.environ[THREADS], os.environ["OMP_NUM_THREADS"]


def refuse(task: int, _: Tell, __: Stop) -> int:
    if task == 1:
        raise UserError("1 is refused", "take 2")
    time.sleep(GIVE_UP)
    return task


def die(task: int, _: Tell, __: Stop) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task


def wait_for_stop(task: int, tell: Tell, stop: Stop) -> int:
    if task == 0:
        return task
    tell("waiting")
    while not stop():
        time.sleep(0.01)
    tell("stopped")
    raise KeyboardInterrupt


def pid_and_wait(folder: str, _: Tell, __: Stop) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(GIVE_UP)


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_has_its_result_and_what_it_told(workers: int) -> None:
    told: list[tuple[int, str]] = []
    results = dict(run_tasks(square, range(5), workers, report=lambda index, what: told.append((index, what))))
    assert results == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}
    assert sorted(told) == [(index, f"{index} squared") for index in range(5)]
    assert multiprocessing.active_children() == []


def test_workers_times_threads_are_at_most_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(7), raising=False)
    monkeypatch.delenv(THREADS, raising=False)
    assert (core_count(), worker_count(0, 100), worker_count(0, 3), worker_count(5, 100)) == (7, 7, 3, 5)
    assert dict(run_tasks(threads_of, [0, 1], 2)) == {0: ("3", "3"), 1: ("3", "3")}
    assert THREADS not in os.environ
    monkeypatch.setenv(THREADS, "4")
    assert core_count() == 4
    monkeypatch.setenv(THREADS, "400")
    assert core_count() == 7
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert core_count() == 1


def test_an_error_ends_the_other_tasks_at_once() -> None:
    with pytest.raises(UserError, match="1 is refused") as refused:
        list(run_tasks(refuse, [1, 2, 3], 2))
    assert refused.value.remedy == "take 2"
    assert multiprocessing.active_children() == []


def test_a_killed_worker_is_said() -> None:
    with pytest.raises(UserError, match="a worker process has died") as died:
        list(run_tasks(die, [1, 2], 2))
    assert "--workers" in died.value.remedy


@pytest.mark.parametrize("workers", [1, 2])
def test_a_wish_to_stop_lets_running_tasks_stop_and_begins_none(workers: int) -> None:
    told: list[str] = []
    results = run_tasks(
        wait_for_stop, [0, 1, 2, 3, 4], workers, report=lambda _, what: told.append(what), stop=lambda: bool(told)
    )
    assert next(results) == (0, 0)
    with pytest.raises(KeyboardInterrupt):
        list(results)
    assert told.count("stopped") == told.count("waiting") >= 1
    assert len(told) <= 2 * workers
    assert multiprocessing.active_children() == []


def start(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    command = [sys.executable, str(script), *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def test_a_script_needs_no_guard_against_being_imported(tmp_path: Path) -> None:
    out, err = start(tmp_path, "square").communicate(timeout=GIVE_UP)
    assert (out, err) == ("[(0, 9), (1, 16)]\n", "")


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_the_first_process(kill: signal.Signals, tmp_path: Path) -> None:
    noted = tmp_path / "pids"
    noted.mkdir()
    process = start(tmp_path, "wait", str(noted))
    wait_until(lambda: len(list(noted.iterdir())) == 2)
    if kill == signal.SIGINT:
        os.killpg(process.pid, kill)  # as a terminal does
    else:
        process.kill()
    err = process.communicate(timeout=GIVE_UP)[1]
    assert err.count("Traceback") == (1 if kill == signal.SIGINT else 0), "only the first process speaks"
    wait_until(lambda: not any(is_alive(int(file.name)) for file in noted.iterdir()))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not (Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z")
