from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fedrecplus.data import FileOptions, load
from fedrecplus.errors import UserError


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown data set 'ml-100'(?s:.*)did you mean 'ml-100k'"):
        load("ml-100")


@pytest.mark.parametrize("path", ["nowhere.csv", "./ml-100k", "no/where"])
def test_what_looks_like_a_path_is_a_missing_file(path: str) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(path)


def test_a_file_in_this_folder_needs_no_ending(
    write: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("1,1,5\n2,2,3\n", "mine")
    monkeypatch.chdir(tmp_path)
    assert load("mine").name == "mine"


def test_file_options_are_refused_with_names() -> None:
    assert load("synthetic:clients=5,items=9,ratings_per_client=2", options=FileOptions()).clients == 5
    with pytest.raises(UserError, match="files only"):
        load("synthetic", options=FileOptions(scale="1:5:1"))
