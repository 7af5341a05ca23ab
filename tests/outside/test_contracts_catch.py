"""The contracts fail where a part breaks them: each broken part, and the test that must find it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fedrecplus import testing
from fedrecplus.errors import UserError
from tests.outside.my_rules import FILES

BROKEN = {
    "rated-items": (
        testing.PseudoItemsContract, "my_pseudo_items", "candidates(count, device.items, items)",
        "candidates(count, device.items[..., :0], items)",
        "test_a_set_is_of_unrated_items_as_many_as_asked_for_ascending",
    ),
    "state-between-calls": (
        testing.PseudoItemsContract, "my_pseudo_items", "        scores = ",
        "        globals()['n'] = globals().get('n', 0) + 1\n        above = above + n\n        scores = ",
        "test_the_same_client_chooses_the_same_whoever_was_asked_before",
    ),
    "depends-on-the-batch": (
        testing.VirtualRatingsContract, "my_virtual_ratings", "* items", "* (items - items[..., -1:])",
        "test_every_item_gets_one_finite_rating_whichever_others_are_asked_for",
    ),
    "numbers-mean-something": (
        testing.EncoderContract, "my_encoder", "V**self.settings.power", "V * np.arange(1, len(V) + 1)[:, None] % 3",
        "test_likeness_does_not_depend_on_how_items_are_numbered",
    ),
    "weights-of-zero": (
        testing.AggregationContract, "my_aggregation", "** -self.settings.power", "> 3.0",
        "test_weights_are_positive_and_finite_whoever_computes_them",
    ),
    "moves-by-itself": (
        testing.ServerOptimizerContract, "my_server_optimizer", "* move)", "* (move + 1e-3))",
        "test_nothing_moves_nothing_from_rest",
    ),
    "another-number-of-tables": (
        testing.ServerOptimizerContract, "my_server_optimizer", "MOMENTS = 1", "MOMENTS = 2",
        "test_it_keeps_as_many_tables_as_it_says_of_the_same_shape_and_type",
    ),
    "drops-items": (
        testing.ChannelContract, "my_channel", "replace(upload, ", "replace(upload, items=upload.items[::-1], ",
        "test_protecting_keeps_the_items_and_is_repeatable",
    ),
    "an-unknown-view": (
        testing.ChannelContract, "my_channel", '"uploads"', '"everything"', "test_it_says_what_the_server_sees",
    ),
    "predicts-something-else": (
        testing.ModelContract, "my_model", "device.U + rows_of", "1 + device.U + rows_of",
        "test_predictions_are_scores_of_columns_and_weights",
    ),
    "learns-the-wrong-way": (
        testing.ModelContract, "my_model", "own, self.settings.learning_rate", "own, -self.settings.learning_rate",
        "test_training_learns_more_than_the_mean",
    ),
    "no-meaning": (
        testing.EncoderContract, "my_encoder", '"of every number"', '""',
        "test_each_option_has_a_meaning_and_a_default_within_its_range",
    ),
    "a-default-out-of-range": (
        testing.EncoderContract, "my_encoder", "= 2", "= 7",
        "test_each_option_has_a_meaning_and_a_default_within_its_range",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_part_is_found(name: str, my_rules: Path) -> None:
    contract, file, old, new, test = BROKEN[name]
    assert old in FILES[file]
    module = f"broken_{name.replace('-', '_')}"
    (my_rules / "my_rules" / f"{module}.py").write_text(FILES[file].lstrip().replace(old, new), encoding="utf-8")
    importlib.invalidate_caches()
    tried = type("Tried", (contract,), {"rule": f"my_rules.{module}"})()
    with pytest.raises((AssertionError, UserError, IndexError, ValueError)):
        getattr(tried, test)()
    sound = type("Sound", (contract,), {"rule": f"my_rules.{file}"})()
    getattr(sound, test)()
