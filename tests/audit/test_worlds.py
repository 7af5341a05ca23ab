"""The control in which a person was never there: a training of its own for each."""

from __future__ import annotations

import numpy as np

from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases
from fedrecplus.audit.worlds import exchanged_ratings
from fedrecplus.config import assign, preset
from fedrecplus.data import split
from tests.audit.conftest import small_town


def test_somebody_elses_ratings_stand_in_one_persons_place() -> None:
    ratings = small_town()
    changed = exchanged_ratings(ratings, 3, 8)
    for client in range(ratings.clients):
        for found, expected in zip(changed.of(client), ratings.of(8 if client == 3 else client), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_statistics_give_a_person_away_and_those_of_the_other_world_do_not() -> None:
    """Exact counts less everybody else's name each rated item; where the person was never counted, they name none."""
    settings = ["model.factors=4", "server.rounds=4", "channel.rule=sums", "aggregation.weigh_on=client"]
    config = assign(preset("fedmf"), settings)
    training, test = split(small_town(), 0)
    extent = AuditExtent(rounds=2, users=4, attacks=("statistics", "sums"), control="worlds")
    rows = {row["attack"]: row for row in audit_case(audit_cases({"mine": config})[-1], training, test, extent)}
    assert all(row["control"] == "worlds" for row in rows.values())
    assert rows["statistics"]["auc"] == 1.0
    assert rows["statistics"]["auc_control"] < 0.7
    assert abs(rows["sums"]["auc"] - rows["sums"]["auc_control"]) < 0.15
