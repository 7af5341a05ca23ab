"""Tables that take turns: the audit sees sums of those columns alone that take part in a round, as the server does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.attacks.knows_some import Settings
from fedrecplus.audit.audit import strongest_score
from fedrecplus.audit.recording import Recording, record
from fedrecplus.config import assign, preset
from fedrecplus.engines import prepare
from tests.audit.conftest import small_town

W, T = slice(4, 10), slice(10, None)


@pytest.fixture(scope="module")
def recording() -> Recording:
    settings = ("model.factors=4", "model.interaction_factors=6", "server.rounds=12")
    config = assign(preset("fedrec+secure"), ["model.rule=sequence", "precision=float64", *settings])
    ratings = small_town(clients=150)
    # who chose an item chose the next one soon after
    dated = replace(ratings, timestamps=np.arange(len(ratings.items)))
    return record(prepare(dated, replace(config, engine="fast")), 12, users=40)


def test_recorded_sums_are_of_the_columns_whose_turn_it_is(recording: Recording) -> None:
    for t, sums in recording.transcript.sums.items():
        assert sums.total[:, W].any() == (t < 9)
        assert sums.total[:, T].any() == (t >= 9)


def test_a_known_item_names_what_was_chosen_beside_it(recording: Recording) -> None:
    found = strongest_score(recording, "near-known", Settings(ratings=5))
    assert found["auc"] - found["auc_control"] > 0.02
    assert found["blind"] == []
