"""An attack that says the same of noise is reported as blind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fedrecplus.audit.attacks import Attack, Guess
from fedrecplus.audit.audit import guesses, strongest_score
from fedrecplus.audit.blind import randomised, unmoved
from fedrecplus.settings import Settings

FIXED_COHORT = ("fedrec+secure", "model.interaction_factors=6")
IGNORES = '''"""Scores items by a public figure and by who is asked about, whatever was seen."""
import numpy as np
from fedrecplus.audit.attacks import Attack
from fedrecplus.audit.attacks import Guess
from fedrecplus.settings import Settings


class Stranger(Attack[Settings]):
    SEES = ("sums", "values", "lists")

    def attack(self, transcript, client):
        items = np.arange(len(transcript.public.popularity))
        return (Guess(0, items, np.full(len(items), 3.0), transcript.public.popularity * (1.0 + client % 3) + items),)
'''
READS = IGNORES.replace("transcript.public.popularity * (1.0 + client % 3)", "transcript.sums[0].total[:, 0]")


@pytest.fixture
def outside(package_of: Callable[..., None]) -> None:
    package_of("strangers", ignores=IGNORES, reads=READS)


@pytest.mark.parametrize("scheme", [FIXED_COHORT, ("fedmf", "channel.rule=sums"), ("fedrec",)])
def test_an_attack_that_ignores_what_it_sees_is_blind(recorded, outside: None, scheme: tuple[str, ...]) -> None:
    recording, _ = recorded(*scheme)
    assert strongest_score(recording, "strangers.ignores", Settings())["blind"] == ["rows", "ratings"]


def test_an_attack_that_reads_a_number_of_the_sums_is_not_blind(recorded, outside: None) -> None:
    recording, _ = recorded(*FIXED_COHORT)
    assert strongest_score(recording, "strangers.reads", Settings())["blind"] == ["ratings"]


@pytest.mark.parametrize("attack", ["sums", "differencing"])
def test_a_fixed_cohort_with_public_weights_leaves_nothing_to_read_and_rows_say_so(recorded, attack: str) -> None:
    recording, _ = recorded(*FIXED_COHORT)
    assert "rows" in strongest_score(recording, attack, Settings())["blind"]


@pytest.mark.parametrize(
    ("attack", "scheme"),
    [
        ("sums", ("fedmf", "channel.rule=sums")),
        ("differencing", ("fedmf", "channel.rule=sums", "cohort.fraction=0.5")),
        ("knows-others", FIXED_COHORT),
        ("statistics", FIXED_COHORT),
        ("popularity", ("fedrec",)),
        ("one-round", ("fedrec",)),
        ("shadow", ("fedrec+private",)),
        ("constraints", ("fedrec+private",)),
        ("two-models", ("fedrec+private",)),
        ("knows-others", ("fedrec+private",)),
    ],
)
def test_attacks_that_read_are_not_blind(recorded, attack: str, scheme: tuple[str, ...]) -> None:
    recording, _ = recorded(*scheme)
    view = recording.transcript
    of_noise = guesses(randomised(view, Attack.choose(attack).SEES), attack)
    assert "rows" not in unmoved(guesses(view, attack), of_noise)


def test_who_says_nothing_is_not_called_blind() -> None:
    silent: Sequence[Guess] = [Guess(0, np.arange(3), np.full(3, np.nan), np.zeros(3))]
    assert unmoved({1: silent}, {1: silent}) == []
    assert unmoved({1: ()}, {1: ()}) == []


def test_randomised_sums_have_none_of_the_numbers_where_they_were(recorded) -> None:
    transcript = recorded(*FIXED_COHORT)[0].transcript
    other = randomised(transcript, frozenset({"sums"}))
    for t, sums in transcript.sums.items():
        assert np.mean(other.sums[t].total == sums.total) < 0.5
        assert np.allclose(np.sort(other.sums[t].total, axis=None), np.sort(sums.total, axis=None))
    assert other.public is transcript.public
