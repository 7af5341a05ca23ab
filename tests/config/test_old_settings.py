"""What was a setting once: a constant is taken if it has its value, and an old name is answered with the new one."""

from __future__ import annotations

import pytest

from fedrecplus.config import Config, assign, change, describe, loads, preset
from fedrecplus.config.change import _RENAMED
from fedrecplus.errors import UserError
from fedrecplus.settings import constants_of


@pytest.mark.parametrize(
    ("section", "old", "other"),
    [
        ('[pseudo_items]\nrule = "grouped"\n', "window = 24", "window = 25"),
        ('[model]\nrule = "ials"\n', "interaction_ridge = 0.175", "interaction_ridge = 1"),
        ("[statistics]\n", "cap = 50", "cap = 49"),
        ('[pseudo_items]\nrule = "random"\n', "count = 0", "count = 5"),
    ],
)
def test_an_old_config_loads_if_it_had_the_value_that_all_have_now(section: str, old: str, other: str) -> None:
    assert loads(section + old) == loads(section)
    with pytest.raises(UserError, match="can't be set any more") as refused:
        loads(section + other)
    assert "the version of fedrecplus that wrote it" in refused.value.remedy


def test_settings_don_t_grow_in_number() -> None:
    assert len({(section, one.name) for section, _, one in describe() if one.name != "rule"}) <= 90


def test_a_constant_is_no_setting() -> None:
    settings = preset("fedrec+secure").model.settings
    constants = constants_of(type(settings))
    assert constants["unobserved_weight"] == settings.unobserved_weight == 0.25
    assert not constants.keys() & {setting.name for _, _, setting in describe("joint")}


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
