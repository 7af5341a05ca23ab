"""Canaries don't contradict a claim that holds, and refute one whose noise was cut to a tenth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.audit.canaries import audited_by_canaries, canary_sentence
from fedrecplus.audit.epsilon_bounds import bounds, epsilon_bound, gaussian_bound
from fedrecplus.config import assign, check, dumps, preset
from fedrecplus.engines import Problem, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import local
from fedrecplus.parts.privacy.central import Central
from fedrecplus.parts.privacy.distributed import Distributed
from tests.audit.conftest import command_json, small_town

BUDGET = (
    "precision=float64", "model.rule=reconstruction", "model.factors=8", "server.rounds=4",
    "aggregation.rule=uniform", "seeded_noise=true",
)  # fmt: skip
CLAIMS = {
    "central": ("privacy.rule=central", "privacy.epsilon=1", "channel.bits=32"),
    "central, ε = 10": ("privacy.rule=central", "privacy.epsilon=10", "channel.bits=32"),
    "distributed": ("privacy.rule=distributed", "privacy.epsilon=1", "channel.bits=32"),
    "distributed, device by device": (
        "privacy.rule=distributed",
        "privacy.epsilon=1",
        "privacy.draw=shares",
        "channel.bits=32",
        "server.rounds=1",
    ),
    "central, amplified by sampling": (
        "privacy.rule=central",
        "privacy.epsilon=1",
        "privacy.amplification=true",
        "privacy.delta=1e-5",
        "privacy.statistics_share=.05",
        "cohort.sampling=poisson",
        "cohort.fraction=.2",
        "channel.least_cohort=2",
        "channel.bits=32",
        "server.rounds=12",
    ),
    "the statistics alone": ("statistics.epsilon=1",),
    "both, of which the statistics have nearly all": (
        "privacy.rule=central",
        "privacy.epsilon=1",
        "privacy.statistics_share=.95",
        "channel.bits=32",
    ),
    "local, Laplace": ("privacy.rule=local", "privacy.epsilon=1", "channel.rule=clear"),
    "local, Gaussian": ("privacy.rule=local", "privacy.noise=gaussian", "privacy.epsilon=1", "channel.rule=clear"),
}


CANARIES = {"distributed, device by device": 300}
"""fewer where each device draws its share by itself, which takes seconds"""


def problem_of(*settings: str) -> Problem:
    named = "".join(settings)
    delta = ["privacy.delta=1e-4"] if "privacy" in named and "privacy.delta" not in named else []
    return prepare(
        small_town(), replace(check(assign(preset("fedrec+secure"), [*BUDGET, *settings, *delta])), engine="fast")
    )


def cut_to_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mechanism adds a tenth of the noise that it claims."""
    for mechanism in (Central, Distributed):

        def noisy(self, vector, release, words=None, whole=mechanism.noisy):
            return whole(self, vector, release._replace(multiplier=release.multiplier / 10), words)

        monkeypatch.setattr(mechanism, "noisy", noisy)
    scale, gaussian = local.laplace_scale, local.seeded_gaussian
    monkeypatch.setattr(local, "laplace_scale", lambda settings: scale(settings) / 10)
    monkeypatch.setattr(local, "seeded_gaussian", lambda *key: gaussian(*key) / 10)


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_that_holds_is_not_contradicted(claim: str) -> None:
    shown = audited_by_canaries(problem_of(*CLAIMS[claim]), CANARIES.get(claim, 800))
    assert not shown["refuted"]
    assert shown["epsilon_shown"] <= shown["epsilon"]
    assert "don't contradict" in canary_sentence(shown)


@pytest.mark.parametrize("claim", CLAIMS)
def test_noise_cut_to_a_tenth_is_caught(claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_to_a_tenth(monkeypatch)
    shown = audited_by_canaries(problem_of(*CLAIMS[claim]), CANARIES.get(claim, 800))
    assert shown["refuted"]
    assert "refuted" in canary_sentence(shown)


def test_a_bound_is_near_the_truth_where_canaries_are_plenty_and_valid_where_they_are_few() -> None:
    """Randomised response at ε = 1.5: each coin is told rightly with e^ε/(1 + e^ε)."""
    random, q = np.random.default_rng(1), 1.0 / (1.0 + np.exp(-1.5))
    included = random.random(4000) < 0.5
    answers = np.where(random.random(4000) < q, included, ~included) + random.random(4000) * 1e-3
    assert 1.2 < epsilon_bound(answers.astype(float), included, 0.0) < 1.5
    assert epsilon_bound(answers[:20].astype(float), included[:20], 0.0) < 1.5
    assert epsilon_bound(random.random(500), random.random(500) < 0.5, 1e-5) < 0.3


def test_nobody_is_guessed_to_be_in_and_out() -> None:
    """Of seven canaries, all told rightly, six are guessed: q⁶ is the chance of that, in each of six shares."""
    included = np.arange(7) > 3
    q = ((1.0 - 0.2) / 6.0) ** (1.0 / 6.0)
    assert epsilon_bound(np.arange(7.0), included, 0.0, 0.2) == pytest.approx(np.log(q / (1.0 - q)), abs=2e-3)


def test_two_bounds_share_what_may_go_wrong_between_them() -> None:
    """The larger of two bounds at 95 % would exceed the truth in up to a tenth of all audits."""
    random = np.random.default_rng(2)
    included = random.random(500) < 0.5
    scores = random.normal(size=500) + 1.5 * included
    each = epsilon_bound(scores, included, 1e-5, 0.975), gaussian_bound(scores, included, 1e-5, 0.975)
    assert bounds(scores, included, 1e-5, 0.95) == each
    assert bounds(scores, included, 1e-5, 0.95, normal=False) == (epsilon_bound(scores, included, 1e-5, 0.95), 0.0)


def test_what_has_no_claim_or_too_many_canaries_is_refused() -> None:
    with pytest.raises(UserError, match="claims no ε"):
        audited_by_canaries(prepare(small_town(), preset("fedmf")), 10)
    with pytest.raises(UserError, match="canaries="):
        audited_by_canaries(problem_of(*CLAIMS["central"]), 10**6)


def test_the_command_writes_what_canaries_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(dumps(problem_of(*CLAIMS["central"]).config))
    content = command_json(
        tmp_path, monkeypatch, "--algorithm", str(file), "--attacks", "knows-others", "--canaries", "300"
    )
    (shown,) = content["canaries"].values()
    assert shown["canaries"] == 300
    assert not shown["refuted"]
