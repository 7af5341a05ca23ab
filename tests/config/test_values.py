"""Settings by name: what is read, what is refused, and what the refusal says."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus.config import Config, assign, change, check, dumps, from_dict, load_config, loads, preset, to_dict
from fedrecplus.config.check import RANGES
from fedrecplus.config.values import fields_of
from fedrecplus.errors import UserError


def all_settings() -> dict[str, Any]:
    """Path → type of every setting."""
    paths: dict[str, Any] = {}
    for name, hint in fields_of(Config).items():
        if dataclasses.is_dataclass(hint):
            paths |= {f"{name}.{option}": inner for option, inner in fields_of(hint).items()}
        else:
            paths[name] = hint
    return paths


EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = all_settings()
NUMBERS = [path for path, hint in SETTINGS.items() if hint in (int, float)]


def value_of(config: Config, path: str) -> Any:
    section, _, option = path.rpartition(".")
    return getattr(getattr(config, section) if section else config, option)


@pytest.mark.parametrize("path", SETTINGS)
def test_every_setting_is_changed_by_its_name_alone(path: str) -> None:
    hint, now = SETTINGS[path], value_of(Config(), path)
    if typing.get_origin(hint) is typing.Literal:
        other: Any = next(value for value in typing.get_args(hint) if value != now)
    else:
        other = {bool: not now, int: 3, float: 0.375, str: "other"}[hint]
    changed = assign(Config(), [f" {path} = {str(other).lower() if hint is bool else other} "])
    assert value_of(changed, path) == other
    assert type(value_of(changed, path)) is (hint if isinstance(hint, type) else str)
    assert change(changed, path, now) == Config()
    assert loads(dumps(changed)) == changed


def test_every_number_has_a_range_that_holds_its_default() -> None:
    assert set(RANGES) == set(NUMBERS)
    assert check(Config()) == Config()


@pytest.mark.parametrize("path", NUMBERS)
def test_a_number_out_of_range_is_refused_by_name(path: str) -> None:
    low, high = RANGES[path]
    kind = SETTINGS[path]
    for value in (low - 1, high + 1 if kind is int else high * 1.01 + 1):
        with pytest.raises(UserError, match=rf"{path} = .* is out of range") as error:
            check(change(Config(), path, kind(value)))
        assert "choose between" in error.value.remedy


@pytest.mark.parametrize("path", [path for path in NUMBERS if SETTINGS[path] is float])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_no_setting_can_be_nan_or_infinite(path: str, value: str) -> None:
    with pytest.raises(UserError, match=path):
        check(assign(Config(), [f"{path}={value}"]))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("client.local_epochs", "5.5", "a whole number"),
        ("client.local_epochs", 5.0, "a whole number"),
        ("client.local_epochs", "many", "a whole number"),
        ("client.local_epochs", True, "a whole number"),
        ("client.local_epochs", [5], "a whole number"),
        ("client.learning_rate", "fast", "a number"),
        ("client.learning_rate", False, "a number"),
        ("client.learning_rate", {"a": 1}, "a number"),
        ("model.biases", "maybe", "true or false"),
        ("model.biases", 2, "true or false"),
        ("seed", "", "a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_right_one(path: str, value: Any, words: str) -> None:
    with pytest.raises(UserError) as error:
        change(Config(), path, value)
    assert path in error.value.problem
    assert f"is not {words}" in error.value.problem
    assert words in error.value.remedy


@pytest.mark.parametrize("text", ["true", "Yes", "ON", "1"])
def test_yes_has_many_words(text: str) -> None:
    assert change(Config(), "model.biases", text).model.biases is True


@pytest.mark.parametrize(
    ("assignment", "near"),
    [
        ("client.local_epoch=5", "client.local_epochs"),
        ("client.learningrate=5", "client.learning_rate"),
        ("clients.local_epochs=5", "client.local_epochs"),
        ("local_epochs=5", "client.local_epochs"),
        ("sed=5", "seed"),
        ("engin=fast", "engine"),
        ("engine=fats", "fast"),
        ("model.start=constnat", "constant"),
        ("aggregation.rows=mean", "mean-own"),
        ("pseudo_items.rule=similer", "similar"),
        ("pseudo_items.encoder=centered", "centred"),
        ("virtual_ratings.rule=user_average", "user-average"),
        ("aggregation.rule=waserstein", "wasserstein"),
        ("server.step=adams", "adam"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(assignment: str, near: str) -> None:
    with pytest.raises(UserError, match=r"^unknown ") as error:
        check(assign(Config(), [assignment]))
    assert f"did you mean {near!r}?" in error.value.remedy
    assert "Known: " in error.value.remedy


def test_an_assignment_without_equals_says_how_to_write_it() -> None:
    with pytest.raises(UserError, match="has no '='"):
        assign(Config(), ["seed"])


def test_a_value_may_hold_an_equals_sign() -> None:
    assert assign(Config(), ["algorithm=a=b"]).algorithm == "a=b"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            ["aggregation.rule=wasserstein", "aggregation.weigh_on=client", "aggregation.global_step=mean"],
            "weigh itself",
        ),
        (["aggregation.rule=wasserstein", "aggregation.denoising=0.2"], "uniform weights"),
        (["aggregation.weigh_on=client", "aggregation.denoising=0.2"], "counts"),
        (["aggregation.covariance=diagonal", "aggregation.denoising=0.2"], "no covariance of one client"),
        (["model.floor=1", "aggregation.normalise=sum"], "means over an item's uploads"),
        (["aggregation.rule=wasserstein", "aggregation.covariance=full"], "reference engine"),
        (["pseudo_items.redraw=true", "virtual_ratings.refresh=false"], "drawn anew"),
    ],
)
def test_settings_that_can_not_be_together_are_refused_with_a_way_out(changes: list[str], problem: str) -> None:
    with pytest.raises(UserError, match=problem) as error:
        check(assign(Config(), changes))
    ways = error.value.remedy.removeprefix("set ").split(" or ")
    for way in ways:
        assert check(assign(Config(), [*changes, way]))


def test_a_broken_file_is_named() -> None:
    with pytest.raises(UserError, match=r"mine\.toml: "):
        loads("seed = ", "mine.toml")
    with pytest.raises(UserError, match=r"mine\.toml: client\.local_epochs"):
        loads('[client]\nlocal_epochs = "x"', "mine.toml")


def test_a_section_that_is_a_number_and_a_number_that_is_a_section_are_refused() -> None:
    with pytest.raises(UserError, match="unknown setting 'client'"):
        loads("client = 3")
    with pytest.raises(UserError, match=r"client\.learning_rate"):
        loads("[client.learning_rate]\na = 1")
    with pytest.raises(UserError, match="unknown setting"):
        loads("[nothing]\na = 1")


def test_a_file_may_say_only_what_is_other_than_in_a_preset() -> None:
    own = loads('extends = "fedrec+"\n[server]\nrounds = 7\n[pseudo_items]\nratio = 3')
    assert own == assign(preset("fedrec+"), ["algorithm=custom", "server.rounds=7", "pseudo_items.ratio=3"])
    assert loads('extends = "fedrec+"\nalgorithm = "mine"').algorithm == "mine"


@pytest.mark.parametrize("name", ['"fedrec*"', "3", "[]"])
def test_a_preset_that_is_not_there_is_named_with_the_file(name: str) -> None:
    with pytest.raises(UserError, match=r"unknown preset in mine\.toml") as error:
        loads(f"extends = {name}", "mine.toml")
    assert "Known: fedmf" in str(error.value)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("equal-*.toml")), ids=lambda file: file.stem)
def test_equal_settings_are_those_of_fedrec_plus_but_for_what_is_compared(file: Path) -> None:
    ours, theirs = to_dict(preset("fedrec+")), to_dict(load_config(file))
    compared = {"pseudo_items", "virtual_ratings", "aggregation"}
    assert {name for name in ours if ours[name] != theirs[name]} == {*compared, "algorithm"}
    assert theirs["pseudo_items"]["ratio"] == ours["pseudo_items"]["ratio"]
    assert theirs["aggregation"]["rule"] == "uniform"


def test_a_file_that_is_not_there_is_named(tmp_path: Any) -> None:
    with pytest.raises(UserError, match=r"absent\.toml"):
        load_config(tmp_path / "absent.toml")


def test_a_file_is_checked(tmp_path: Any) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[pseudo_items]\nrule = "nosuch"\n')
    with pytest.raises(UserError, match="unknown pseudo item rule 'nosuch'"):
        load_config(file)
    file.write_text("seed = 4\n[client]\nlocal_epochs = 2\n")
    assert load_config(file) == assign(Config(), ["seed=4", "client.local_epochs=2"])


@settings(max_examples=60)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 2**62), st.booleans(),
    st.floats(allow_nan=False), st.integers(-(10**9), 10**9),
)  # fmt: skip
def test_any_values_survive_a_file(name: str, seed: int, biases: bool, rate: float, epochs: int) -> None:
    tables = {
        "algorithm": name, "seed": seed, "model": {"biases": biases},
        "client": {"learning_rate": rate, "local_epochs": epochs},
    }  # fmt: skip
    config = from_dict(tables)
    assert loads(dumps(config)) == config
    assert from_dict(to_dict(config)) == config
