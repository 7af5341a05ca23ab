"""A setting of version 0.1 is told what it is called today, and what it is told exists."""

from __future__ import annotations

import pytest

from fedrecplus.config import Config, assign, change, loads
from fedrecplus.config.change import _RENAMED
from fedrecplus.errors import UserError

NEEDED = ["pseudo_items.rule=random", "channel.rule=denoising"]


@pytest.mark.parametrize("old", _RENAMED)
def test_the_new_name_is_said_and_can_be_set(old: str) -> None:
    with pytest.raises(UserError, match=r"before 0\.2") as error:
        change(Config(), old, "1")
    new = error.value.remedy.removeprefix("write ").split(", ")[0].split(" and ")[0]
    start = assign(Config(), [*NEEDED, "server_optimizer.rule=momentum"])
    path, _, value = new.partition("=")
    if value or path.endswith(".rule"):
        assign(start, [f"{path}={value}"] if value else [])
    else:
        with pytest.raises(UserError, match=f"{path} = 'no such value'"):
            change(start, path, "no such value")


def test_it_is_said_of_files_too() -> None:
    with pytest.raises(UserError, match=r"pseudo_items\.pad is a setting of fedrecplus before 0\.2"):
        loads('[pseudo_items]\nrule = "random"\npad = true')
