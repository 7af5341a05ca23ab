"""Settings by name: what is read, what is refused, and what the refusal says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.config import Config, assign, change, check, describe, dumps, from_tables, load_config, loads, to_tables
from fedrecplus.errors import UserError

SETTINGS = list(describe())
OWN = {"": "", "cohort": "", "server": "", "evaluation": ""}


def with_rule(section: str, rule: str) -> Config:
    return assign(Config(), [f"{section}.rule={rule}"] if rule else [])


def test_every_number_is_refused_by_name_out_of_its_range_and_where_it_is_none() -> None:
    numbers = [each for each in SETTINGS if each[2].low is not None]
    assert len(numbers) > 40
    for section, rule, setting in numbers:
        assert setting.low is not None
        assert setting.high is not None
        config, path = with_rule(section, rule), f"{section}.{setting.name}".lstrip(".")
        for value in (
            setting.low - 1,
            setting.high + 1 if setting.whole else setting.high * 1.01 + 1,
            "nan",
            "inf",
            "x",
        ):
            with pytest.raises(UserError) as error:
                change(config, path, int(value) if setting.whole and not isinstance(value, str) else value)
            assert path in error.value.problem
            assert "between" in error.value.remedy


def test_every_setting_is_documented_once_and_has_a_default_that_it_accepts() -> None:
    """Those of parts are tested by their contracts; here those that belong to none."""
    places = [(section, rule, setting.name) for section, rule, setting in SETTINGS]
    assert len(set(places)) == len(places)
    for section, rule, setting in SETTINGS:
        assert setting.meaning, setting.name
        if section in OWN:
            path = f"{section}.{setting.name}".lstrip(".")
            assert change(Config(), path, setting.default) == Config()
            assert rule == ""


def test_another_rule_keeps_the_options_that_it_shares_and_drops_the_others() -> None:
    config = assign(Config(), ["aggregation.rule=wasserstein", "aggregation.weigh_on=client", "aggregation.bound=0.9"])
    other = change(config, "aggregation.rule", "uniform")
    assert other.aggregation.settings.weigh_on == "client"
    assert not hasattr(other.aggregation.settings, "bound")
    # the order on the command line is of no account
    swapped = assign(Config(), ["aggregation.bound=0.9", "aggregation.weigh_on=client", "aggregation.rule=wasserstein"])
    assert swapped == config


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("model.local_epochs", "5.5", "a whole number"),
        ("model.local_epochs", 5.5, "a whole number"),
        ("model.local_epochs", "many", "a whole number"),
        ("model.local_epochs", True, "a whole number"),
        ("model.local_epochs", [5], "a whole number"),
        ("model.learning_rate", "fast", "a number"),
        ("model.learning_rate", False, "a number"),
        ("model.learning_rate", {"a": 1}, "a number"),
        ("virtual_ratings.refresh", "maybe", "true or false"),
        ("virtual_ratings.refresh", 2, "true or false"),
        ("seed", "", "a whole number"),
        ("model.init", "constnat", "constant, normal, uniform"),
        ("algorithm", 3, "text"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_right_one(path: str, value: Any, words: str) -> None:
    with pytest.raises(UserError) as error:
        change(Config(), path, value)
    assert path in error.value.problem
    assert words in error.value.remedy


def test_yes_has_many_words() -> None:
    for meant, texts in ((True, ("true", "Yes", "ON", "1")), (False, ("off", "no", "0"))):
        for text in texts:
            assert change(Config(), "virtual_ratings.refresh", text).virtual_ratings.settings.refresh is meant


@pytest.mark.parametrize(
    ("assignment", "near"),
    [
        ("model.local_epoch=5", "model.local_epochs"),
        ("model.learningrate=5", "model.learning_rate"),
        ("models.local_epochs=5", "model.local_epochs"),
        ("local_epochs=5", "model.local_epochs"),
        ("sed=5", "seed"),
        ("engin=fast", "engine"),
        ("pseudo_items.rule=similer", "similar"),
        ("encoder.rule=centered", "centred"),
        ("virtual_ratings.rule=user_average", "user-average"),
        ("aggregation.rule=waserstein", "wasserstein"),
        ("server_optimizer.rule=adams", "adam"),
        ("model.rule=recnstruction", "reconstruction"),
        ("channel.rule=sum", "sums"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(assignment: str, near: str) -> None:
    with pytest.raises(UserError, match=r"^unknown ") as error:
        assign(Config(), [assignment])
    assert f"did you mean {near!r}?" in error.value.remedy
    assert "Known: " in error.value.remedy


def test_an_assignment_has_one_equals_sign_that_counts() -> None:
    with pytest.raises(UserError, match="has no '='"):
        assign(Config(), ["seed"])
    assert assign(Config(), ["algorithm=a=b"]).algorithm == "a=b"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            ["aggregation.rule=wasserstein", "aggregation.weigh_on=client", "aggregation.global_step=mean"],
            "weigh itself",
        ),
        (["aggregation.rule=wasserstein", "channel.rule=denoising"], "uniform weights"),
        (["aggregation.weigh_on=client", "channel.rule=denoising"], "uniform weights"),
        (["aggregation.rule=krum", "channel.rule=sums"], "needs single uploads"),
        (["aggregation.rule=wasserstein", "channel.rule=sums"], "needs single uploads"),
        (
            ["aggregation.rule=wasserstein", "aggregation.covariance=diagonal", "model.batch_size=4"],
            "is not the model's",
        ),
        (["model.rule=reconstruction", "aggregation.normalise=none"], "weighs its own sums"),
        (["pseudo_items.rule=random", "pseudo_items.redraw=true", "virtual_ratings.refresh=false"], "drawn anew"),
    ],
)
def test_settings_that_can_not_be_together_are_refused_with_a_way_out(changes: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem) as error:
        check(assign(Config(), changes))
    for way in error.value.remedy.removeprefix("set ").replace(", or ", " or ").split(" or "):
        assert check(assign(assign(Config(), changes), way.split(" and ")))


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"mine\.toml: "):
        loads("seed = ", "mine.toml")
    with pytest.raises(UserError, match=r"mine\.toml: model\.local_epochs"):
        loads('[model]\nlocal_epochs = "x"', "mine.toml")
    with pytest.raises(UserError, match=r"absent\.toml"):
        load_config(tmp_path / "absent.toml")
    file = tmp_path / "mine.toml"
    file.write_text("[pseudo_items]\nredraw = true\nrule = 'random'\n[virtual_ratings]\nrefresh = false")
    with pytest.raises(UserError, match="drawn anew"):
        load_config(file)
    with pytest.raises(UserError, match=r"before 0\.2"):
        loads("[client]\nlocal_epochs = 2")


def test_a_section_that_is_a_number_and_a_number_that_is_a_section_are_refused() -> None:
    for text in ("model = 3", "[nothing]\na = 1", "[model.learning_rate]\na = 1", "[[model]]\nfactors = 3"):
        with pytest.raises(UserError):
            loads(text)


@settings(max_examples=60)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 2**62), st.booleans(),
    st.floats(1e-12, 1e6), st.integers(1, 10_000),
)  # fmt: skip
def test_any_values_survive_a_file(name: str, seed: int, refresh: bool, rate: float, epochs: int) -> None:
    tables = {
        "algorithm": name, "seed": seed, "virtual_ratings": {"refresh": refresh},
        "model": {"learning_rate": rate, "local_epochs": epochs},
    }  # fmt: skip
    config = from_tables(tables)
    assert loads(dumps(config)) == config
    assert from_tables(to_tables(config)) == config
