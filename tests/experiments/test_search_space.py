"""What may be searched: text in, dimensions out, and errors that say how to write it."""

from __future__ import annotations

import re

import pytest

from fedrecplus.config import Config, assign, preset, presets, settings_in, value_of
from fedrecplus.errors import UserError
from fedrecplus.experiments.search_space import Dimension, default_dimensions, parse_dimensions, with_values

BAD = {
    "no equals sign": ("model.factors", "says nothing to choose from"),
    "nothing to choose from": ("model.factors=", "says nothing to choose from"),
    "unknown setting": ("model.factor=5..10", "did you mean 'model.factors'"),
    "unknown section": ("modl.factors=5..10", "unknown setting"),
    "no whole number": ("model.factors=5.5..10", "not a whole number"),
    "no number": ("model.learning_rate=low..high", "is not a number"),
    "not a number": ("model.learning_rate=nan..1", "is not a number"),
    "ends the wrong way round": ("model.factors=10..5", "not below"),
    "ends that are equal": ("model.factors=5..5", "not below"),
    "an open end": ("model.factors=5..", "not a whole number"),
    "logarithm of zero": ("aggregation.temperature=0..1:log", "no logarithm"),
    "logarithm of choices": ("model.factors=5,10:log", "no logarithm"),
    "out of range": ("cohort.fraction=0.1..2", "out of range"),
    "range of names": ("server_optimizer.rule=adam..sgd", "is not a number"),
    "range of truths": ("virtual_ratings.refresh=false..true", "is not a number"),
    "single choice": ("model.factors=5", "set with model.factors=5"),
    "a choice twice": ("model.factors=5,5", "two different values"),
    "an empty choice": ("model.factors=5,", "not a whole number"),
    "unknown part": ("server_optimizer.rule=sgd,adm", "did you mean 'adam'"),
    "unknown value": ("model.init=constant,norml", "choose one of constant, normal, uniform"),
    "the seed": ("seed=1,2", "luck"),
    "the name": ("algorithm=fedmf,fedrec", "not a setting"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_search_that_makes_no_sense_is_refused(case: str) -> None:
    text, said = BAD[case]
    with pytest.raises(UserError, match=re.escape(said)):
        parse_dimensions([text], preset("fedrec+paper"))


def test_a_setting_is_searched_once() -> None:
    with pytest.raises(UserError, match="twice"):
        parse_dimensions(["model.factors=5..10", "model.factors=5,10"], Config())


def test_values_have_their_setting_s_type() -> None:
    texts = [
        "model.factors=5..50",
        "model.learning_rate = 1e-3..1:log",
        "virtual_ratings.refresh=true,false",
        "server.rounds=5,10",
    ]
    assert parse_dimensions(texts, Config()) == [
        Dimension("model.factors", (5, 50), "range"),
        Dimension("model.learning_rate", (0.001, 1.0), "log"),
        Dimension("virtual_ratings.refresh", (True, False)),
        Dimension("server.rounds", (5, 10)),
    ]


def test_dimensions_are_read_back_from_their_text() -> None:
    texts = [
        "model.init_scale=.5...9",
        "model.factors=5..50:log",
        "server_optimizer.rule=sgd,adam",
        "virtual_ratings.refresh=true,false",
    ]
    dimensions = parse_dimensions(texts, Config())
    assert parse_dimensions([str(dimension) for dimension in dimensions], Config()) == dimensions


def test_a_choice_may_need_another_choice_beside_it() -> None:
    kept = assign(Config(), ["pseudo_items.rule=random", "virtual_ratings.refresh=false"])
    texts = ["pseudo_items.redraw=true,false", "virtual_ratings.refresh=true,false"]
    assert len(parse_dimensions(texts, kept)) == 2
    with pytest.raises(UserError, match="virtual ratings"):
        with_values(kept, {"pseudo_items.redraw": True})


def test_what_the_default_falls_back_on_is_not_tuned() -> None:
    assert default_dimensions(preset("biases")) == []


@pytest.mark.parametrize("name", [name for name in presets() if name != "biases"])
def test_every_preset_has_a_search_around_itself(name: str) -> None:
    config = preset(name)
    dimensions = default_dimensions(config)
    assert len(dimensions) >= 2
    assert parse_dimensions([str(dimension) for dimension in dimensions], config) == dimensions
    described = dict(settings_in(config))
    for dimension in dimensions:
        own, (low, high) = value_of(config, dimension.name), dimension.values
        assert low < own < high or (low < own == high and high == described[dimension.name].high), dimension
        assert described[dimension.name].low <= low
        with_values(config, {dimension.name: low})
        with_values(config, {dimension.name: high})


def test_privacy_and_the_price_of_a_trial_are_searched_only_by_name() -> None:
    config = assign(preset("fedrec+"), ["pseudo_items.ratio=3", "cohort.dropout=0.2", "server.rounds=7", "seed=3"])
    names = {dimension.name for dimension in default_dimensions(config)}
    assert names >= {"model.factors", "server_optimizer.momentum", "aggregation.temperature"}
    assert not names & {"pseudo_items.ratio", "cohort.dropout", "server.rounds", "model.local_epochs", "seed"}
    off = assign(config, ["aggregation.temperature=0"])
    assert names - {dimension.name for dimension in default_dimensions(off)} == {"aggregation.temperature"}


def test_nearest_is_the_value_itself_or_an_end() -> None:
    assert [Dimension("model.factors", (5, 10), "range").nearest(value) for value in (1, 7, 20)] == [5, 7, 10]
    assert Dimension("server_optimizer.rule", ("adam", "momentum")).nearest("sgd") == "adam"


def test_lists_are_searched_by_what_ranks_them() -> None:
    config = preset("fedrec+secure")
    plain, lists = ({one.name: one for one in default_dimensions(config, lists=lists)} for lists in (False, True))
    assert "model.popularity_weight" not in plain
    assert {"model.popularity_weight", "model.rating_weight", "model.interaction_factors"} <= set(lists)
    assert lists["model.rating_weight"].values[0] == 0.0
    assert set(plain) <= set(lists)
