from __future__ import annotations

from collections.abc import Callable

import pytest
from local_grouplens import GroupLens, small_set
from typer.testing import CliRunner

from fedrecplus.cli.data import data_app
from fedrecplus.data.movielens.fetch import cached_path
from fedrecplus.data.movielens.sets import KNOWN
from fedrecplus.errors import UserError


def output(*arguments: str) -> str:
    result = CliRunner().invoke(data_app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_list_names_every_set_whole_and_says_which_are_here(grouplens: GroupLens) -> None:
    grouplens.publish("ml-latest-small", small_set())
    output("get", "ml-latest-small")
    lines = {line.split()[0]: line.split()[-1] for line in output("list").splitlines() if line}
    assert lines["ml-latest-small"] == "yes"
    assert lines["ml-1m"] == "no"
    assert set(KNOWN) | {"synthetic"} <= set(lines)


def test_get_says_where_the_set_is_kept_and_that_its_size_has_changed(grouplens: GroupLens) -> None:
    grouplens.publish("ml-1m", small_set())
    with pytest.raises(UserError, match=r"holds no ratings\.dat"):
        output("get", "ml-1m")
    grouplens.publish("ml-latest-small", small_set())
    shown = output("get", "ml-latest-small")
    assert str(cached_path("ml-latest-small")) in shown
    assert "as published has 100,836 ratings, this copy has 4" in shown


def test_info_shows_a_file_with_its_scale(write: Callable[..., str]) -> None:
    path = write("who#what#how\n1#1#5\n2#2#3.5\n2#2#4\n")
    columns = ("--user-column", "who", "--item-column", "2", "--rating-column", "how", "--separator", "#")
    shown = output("info", path, *columns, "--duplicates", "last", "--scale", "0.5:5:0.5")
    assert "0.5:5:0.5 (10 levels)" in shown
    assert "█" in shown


def test_info_shows_scale_and_name_as_they_are_and_whole(write: Callable[..., str]) -> None:
    name = f"[bold]{'long-' * 40}:smile:.csv"
    shown = output("info", write("1,1,0\n2,2,100\n3,1,37\n", name))
    assert "0:100:1 (101 levels)" in shown
    assert name in shown
