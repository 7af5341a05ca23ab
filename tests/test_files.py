"""Files that are whole or not there, JSON to standard output, and locks that name their holder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedrecplus.errors import UserError
from fedrecplus.files import STDOUT, beside, check_writable, locked, write_json, write_json_to
from tests.waiting import GIVE_UP


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(UnicodeEncodeError), beside(path) as temporary:
        temporary.write_text("half of it", encoding="ascii") and temporary.write_text("é", encoding="ascii")
    assert json.loads(path.read_text()) == {"a": 1}
    assert [file.name for file in path.parent.iterdir()] == ["file.json"]


def test_json_goes_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json_to(None, {})
    write_json_to(tmp_path / "a.json", [1, 2])
    assert capsys.readouterr().out == ""
    write_json_to(STDOUT, [1, 2])
    assert capsys.readouterr().out == (tmp_path / "a.json").read_text()


def test_places_that_cannot_be_written_to_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is a file"):
        check_writable(tmp_path / "file" / "folder")
    with pytest.raises(UserError, match="file"):
        write_json(tmp_path / "file" / "x.json", {})
    check_writable(tmp_path / "no" / "folder" / "yet")
    assert not (tmp_path / "no").exists()


def test_a_lock_has_one_holder_and_the_error_names_it(tmp_path: Path) -> None:
    path = tmp_path / "there" / ".lock"
    for _ in range(2):  # it is free again after the block
        with locked(path, "the study", "wait"), pytest.raises(UserError) as refused, locked(path, "the study", "wait"):
            pass
        assert refused.value.problem == f"another process (id {os.getpid()}) works on the study"
        assert refused.value.remedy == "wait"


def test_a_lock_leaves_no_file_and_those_who_wait_for_it_take_turns(tmp_path: Path) -> None:
    path, count = tmp_path / ".lock", tmp_path / "count"
    count.write_text("0")
    script = """
import sys, time
from pathlib import Path
from fedrecplus.files import locked
for _ in range(40):
    with locked(Path(sys.argv[1]), "", "", patience=float(sys.argv[3])):
        seen = int(Path(sys.argv[2]).read_text())
        time.sleep(0.001)
        Path(sys.argv[2]).write_text(str(seen + 1))
"""
    arguments = [sys.executable, "-c", script, str(path), str(count), str(GIVE_UP)]
    workers = [subprocess.Popen(arguments) for _ in range(3)]
    assert [worker.wait(GIVE_UP) for worker in workers] == [0, 0, 0]
    assert count.read_text() == "120"
    assert not path.exists()


def test_a_killed_holder_frees_its_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    code = """
import sys
from pathlib import Path
from fedrecplus.files import locked
with locked(Path(sys.argv[1]), "", ""):
    print("held", flush=True)
    sys.stdin.read()
"""
    arguments = [sys.executable, "-c", code, str(path)]
    holder = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    with holder, holder.stdout:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match=f"id {holder.pid}"), locked(path, "it", ""):
            pass
        holder.kill()
        with locked(path, "it", "", patience=GIVE_UP):
            pass
