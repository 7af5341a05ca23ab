"""What was a setting once and is a constant now: configs of that time load, unless they had another value."""

from __future__ import annotations

import pytest

from fedrecplus.config import describe, loads, preset
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
