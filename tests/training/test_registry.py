"""Published models: public tables alone, never changed, and a kill leaves current what was."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import fedrecplus
from fedrecplus.cli.main import exit_code_of
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import CLIENTS, MODEL, SharedModel, read_tensors
from fedrecplus.training.publishing import published_model
from fedrecplus.training.registry import CURRENT, PUBLISHED, Registry
from tests.waiting import GIVE_UP

KILLED_AT_EACH_STEP = """
import os, shutil, signal, sys
from pathlib import Path
from fedrecplus.training.registry import Registry
from fedrecplus.training import model_files
import numpy, safetensors.numpy

registry, run = Path(sys.argv[1]), Path(sys.argv[2])
steps = ("open", "os.mkdir", "os.rename", "os.chmod", "os.remove", "os.rmdir")
step = 0
while True:
    step += 1
    if os.fork() == 0:
        seen = 0
        def note(event, arguments):
            global seen
            if event in steps and str(registry) in str(arguments[0]):
                seen += 1
                if seen == step:
                    print(step, event, *map(str, arguments[:2]), flush=True)
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(note)
        Registry(registry).publish(run)
        os._exit(0)
    _, status = os.wait()
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
    current, models = Registry(registry).current(), Registry(registry).models()
    current.model()
    assert all(model.model() is not None for model in models)
    print("current", current.number, flush=True)
    Registry(registry).rollback(1)
    shutil.rmtree(registry / "2", ignore_errors=True)  # so that the next attempt goes through the same steps
"""


def test_what_is_published_last_is_current_and_earlier_ones_stay(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    registry = Registry(tmp_path / "registry")
    for number, run in enumerate(runs, 1):
        published = registry.publish(run)
        assert (published.number, registry.current()) == (number, published)
        result = json.loads((run / "result.json").read_text())
        assert published.figures["rmse"] == round(result["rmse"], 3)
        assert published.made["commit"] == result["made"]["commit"]
        expected = published_model(SharedModel.read(run), result)
        np.testing.assert_array_equal(published.model().V, expected.V)
    assert [model.number for model in registry.models()] == [1, 2]
    assert len({model.digest for model in registry.models()}) == 2


def test_rolling_back_and_publishing_again(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    registry = Registry(tmp_path / "registry")
    for run in runs:
        registry.publish(run)
    assert registry.rollback().number == 1
    assert registry.current().number == 1
    with pytest.raises(UserError, match="no model before the current one"):
        registry.rollback()
    assert registry.publish(runs[1]).number == 2, "the same model is not copied twice"
    assert [model.number for model in registry.models()] == [1, 2]
    assert registry.rollback(1).number == 1
    with pytest.raises(UserError, match="has no model 7"):
        registry.rollback(7)


def test_nothing_of_a_client_is_published(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    """Not even if somebody wrote it into the model's file."""
    run = shutil.copytree(runs[0], tmp_path / "run")
    private, _ = read_tensors(run / CLIENTS)
    public, metadata = read_tensors(run / MODEL)
    save_file({**public, "codes": private["codes"], "W": private["W"]}, run / MODEL, metadata)
    published = Registry(tmp_path / "registry").publish(run)
    assert sorted(each.name for each in published.folder.iterdir()) == [MODEL, PUBLISHED]
    assert set(load_file(published.folder / MODEL)) == set(read_tensors(runs[0] / MODEL)[0])
    written = (published.folder / PUBLISHED).read_text()
    assert "command" not in written
    assert str(tmp_path) not in written
    client_ids = {name for name in private if name.startswith("client_ids")}
    assert client_ids.isdisjoint(load_file(published.folder / MODEL))


def test_files_are_read_only_and_a_changed_one_is_not_used(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    registry = Registry(tmp_path / "registry")
    first, second = (registry.publish(run) for run in runs)
    assert {stat.S_IMODE(file.stat().st_mode) for file in first.folder.iterdir()} == {0o444}
    (first.folder / MODEL).chmod(0o644)
    shutil.copy(second.folder / MODEL, first.folder / MODEL)
    with pytest.raises(UserError, match="not what was published"):
        registry.rollback(1)
    assert registry.current().number == 2


def test_a_kill_at_any_step_leaves_a_whole_registry(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    """Killed by signal 9 before each file operation in turn: the old model is current until the new one is."""
    registry = tmp_path / "registry"
    Registry(registry).publish(runs[0])
    environment = {**os.environ, "PYTHONPATH": str(Path(fedrecplus.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KILLED_AT_EACH_STEP, str(registry), str(runs[1])],
        capture_output=True, text=True, env=environment, timeout=GIVE_UP,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    killed = [line.split()[1] for line in done.stdout.splitlines() if not line.startswith("current")]
    assert {"os.mkdir", "open", "os.rename", "os.chmod"} <= set(killed)
    pointed = [line for line in done.stdout.splitlines() if "os.rename" in line and line.endswith(f"/{CURRENT}")]
    assert len(pointed) == 1, "killed before the pointer was replaced"
    told = re.findall(r"^current (\d)$", done.stdout, re.M)
    assert told == sorted(told), "the old one before that moment, the new one after it"
    assert set(told) == {"1", "2"}
    assert Registry(registry).current().number == 2, "the last attempt came through"
    assert not [each.name for each in registry.iterdir() if each.name.endswith(".part")]


def test_an_unfinished_or_missing_run_is_refused(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    run = shutil.copytree(runs[0], tmp_path / "run")
    (run / "result.json").unlink()
    with pytest.raises(UserError, match="no finished run"):
        Registry(tmp_path / "registry").publish(run)
    with pytest.raises(UserError, match="no such folder"):
        Registry(tmp_path / "registry").publish(tmp_path / "nowhere")
    with pytest.raises(UserError, match="no current model"):
        Registry(tmp_path / "registry").current()
    assert Registry(tmp_path / "registry").models() == []


def test_publications_at_the_same_time_come_one_after_the_other(tmp_path: Path, runs: tuple[Path, Path]) -> None:
    registry = Registry(tmp_path / "registry")
    threads = [threading.Thread(target=registry.publish, args=(run,)) for run in (*runs, *runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GIVE_UP)
    assert [model.number for model in registry.models()] == [1, 2]
    assert registry.current().number in (1, 2)


def test_the_commands(tmp_path: Path, runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--registry", str(tmp_path / "registry")]
    for run in runs:
        assert exit_code_of(["publish", str(run), *place]) == 0
    assert exit_code_of(["rollback", *place]) == 0
    capsys.readouterr()
    assert exit_code_of(["models", *place, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["number"], row["current"]) for row in listed] == [(1, True), (2, False)]
    assert exit_code_of(["models", *place]) == 0
    table = capsys.readouterr().out
    assert listed[0]["digest"][:12] in table
    assert f"{listed[0]['figures']['rmse']:.3f}" in table
    (tmp_path / "registry" / CURRENT).write_text("nonsense")
    assert exit_code_of(["models", *place]) == 2
    assert exit_code_of(["rollback", "2", *place]) == 0, "a damaged pointer is mended by naming a model"


def test_a_registry_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlalchemy")
    for command in ("models", "rollback"):
        assert exit_code_of([command, "--registry", str(tmp_path / "nope")]) == 2
        assert "no such registry" in capsys.readouterr().err
        assert exit_code_of([command, "--server", "--home", str(tmp_path / "nope")]) == 2
        assert "no server's home" in capsys.readouterr().err
    assert not (tmp_path / "nope").exists()
