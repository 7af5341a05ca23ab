"""The attacks are strong on real ratings: MovieLens-100K."""

from __future__ import annotations

from functools import cache

import pytest

from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases
from fedrecplus.config import assign, preset
from fedrecplus.data import load, split

pytestmark = pytest.mark.slow
ONE_EPOCH = "model.local_epochs=1"


@cache
def row_of(attack: str, scheme: str, *settings: str):
    training, test = split(load("ml-100k"), 0)
    config = assign(preset(scheme), ["server.rounds=60", *settings])
    case = audit_cases({scheme: config})[-1]
    return audit_case(case, training, test, AuditExtent(rounds=12, users=60, attacks=(attack,)))[0]


@pytest.mark.parametrize("scheme", ["fedmf", "fedmf-vanilla", "fedrec+private"])
def test_one_upload_shows_its_ratings(scheme: str) -> None:
    assert row_of("one-round", scheme)["rating_exact"] >= 0.99


@pytest.mark.parametrize("scheme", ["fedrec", "fedrec-hf"])
def test_one_upload_shows_which_rows_are_virtual(scheme: str) -> None:
    assert row_of("one-round", scheme)["auc"] >= 0.9


def test_the_size_of_residuals_betrays_predicted_ratings() -> None:
    settings = ("virtual_ratings.rule=predicted", "virtual_ratings.rounding=stochastic")
    assert row_of("one-round", "fedrec+paper", ONE_EPOCH, *settings)["auc"] >= 0.65


def test_popularity_betrays_random_pseudo_items() -> None:
    assert row_of("popularity", "fedrec")["auc"] >= 0.8


def test_weights_fitted_to_rated_items_alone_betray_them() -> None:
    assert row_of("u-step", "fedrec+", "model.user_step=rated")["auc"] >= 0.98


@pytest.mark.parametrize("epochs", [5, 10])
def test_inversion_reads_ratings_through_local_epochs(epochs: int) -> None:
    assert (
        row_of(
            "inversion",
            "fedmf-vanilla",
            "model.learning_rate=0.2",
            "aggregation.normalise=item",
            f"model.local_epochs={epochs}",
        )["rating_exact"]
        >= 0.85
    )
