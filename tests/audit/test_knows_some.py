"""Some of a person's ratings imply a direction that rows of a sum lean to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.attacks._presence import unexplained
from fedrecplus.audit.attacks.knows_some import Settings
from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases, guesses, strongest_score
from fedrecplus.config import assign, preset
from fedrecplus.data import split
from tests.audit.conftest import small_town

SECURE = ("fedrec+secure", "model.interaction_factors=6")


def test_sums_say_more_of_whom_one_knows_a_little_and_nothing_is_asked_that_was_known(recorded) -> None:
    recording, _ = recorded(*SECURE)
    found = strongest_score(recording, "knows-some", Settings(ratings=5))
    assert found["auc"] - found["auc_control"] > 0.05
    assert found["blind"] == []
    for client, (guess,) in guesses(recording.transcript, "knows-some", Settings(ratings=5)).items():
        assert len(guess.told) == 5
        assert np.isin(guess.told, recording.truth.of_client[client][0]).all()
        assert not np.isin(guess.told, recording.truth.question(client, guess.told)).any()
        assert not np.isin(guess.told, guess.items).any()


def test_sums_say_more_of_whom_was_away(recorded) -> None:
    """The rounds without a person say what is not the person's in the rounds with it."""
    fixed, churning = (
        strongest_score(recorded(*SECURE, *settings)[0], "knows-some", Settings(ratings=5))
        for settings in ((), ("cohort.dropout=0.1",))
    )
    assert churning["auc"] - churning["auc_control"] > fixed["auc"] - fixed["auc_control"] + 0.02


def test_a_control_s_sums_are_explained_by_their_own_rows(recorded) -> None:
    """What was kept of other sums is of other rows: an exchanged person may have been a row's only rater."""
    transcript = recorded(*SECURE)[0].transcript
    columns = transcript.config.model.choosing().columns
    t = transcript.rounds_of(columns)[0]
    unexplained(transcript, t, columns)
    total = transcript.sums[t].total.copy()
    total[np.argmax(transcript.public.popularity)] = 0.0
    view = transcript.with_sums({t: replace(transcript.sums[t], total=total)})
    afresh = replace(view, sums=view.sums)
    np.testing.assert_array_equal(unexplained(view, t, columns)[0], unexplained(afresh, t, columns)[0])


@pytest.mark.parametrize(("asked", "known"), [(5, 5), (20, 10), (0, 10)])
def test_never_more_than_half_is_known_and_fewer_are_among_the_more(recorded, asked: int, known: int) -> None:
    contributions = recorded(*SECURE)[0].contributions
    client = next(iter(contributions.truth.of_client))
    items, ratings = contributions.some(client, asked)
    assert len(items) == len(ratings) == known
    assert set(items) <= set(contributions.some(client, 0)[0])


def test_figures_by_rarity_cover_the_items_in_question(recorded) -> None:
    recording, _ = recorded(*SECURE)
    found = strongest_score(recording, "knows-some", Settings(ratings=5))["by_rarity"]
    known = {client: recording.contributions.some(client, 5)[0] for client in recording.truth.of_client}
    asked = sum(len(recording.truth.question(client, items)) for client, items in known.items())
    assert sum(bucket["items"] for bucket in found) <= asked
    for bucket in found:
        low, high = bucket["gain_interval"]
        assert low <= bucket["auc"] - bucket["auc_control"] <= high


def test_noise_hides_whom_one_knows_a_little() -> None:
    settings = ["model.factors=4", "model.interaction_factors=4", "server.rounds=3", "privacy.rule=central"]
    training, test = split(small_town(), 0)
    config = assign(
        preset("fedrec+secure"),
        [
            *settings,
            "privacy.epsilon=1",
            "privacy.delta=1e-3",
            "privacy.clip=0.1",
            "aggregation.rule=uniform",
            "channel.bits=32",
        ],
    )
    row = audit_case(audit_cases({"mine": config})[-1], training, test, AuditExtent(3, 40, ("knows-some",)))[0]
    assert abs(row["auc"] - row["auc_control"]) < 0.04


def test_rows_that_nobody_sends_stay_empty_in_the_control(recorded) -> None:
    """Else what was never in a sum would be missing in it, and the control would be worse than chance."""
    recording, _ = recorded(*SECURE, "channel.fewest_contributors=8")
    transcript, others = recording.transcript, recording.truth.others
    client = transcript.clients[0]
    view = recording.contributions.replaced(transcript, client, others[client])
    rare = transcript.public.popularity < 8
    assert rare[recording.truth.of_client[client][0]].any()
    for t, sums in view.sums.items():
        assert not transcript.sums[t].total[rare].any()
        assert not sums.total[rare].any()
        assert (sums.total != transcript.sums[t].total).any()
