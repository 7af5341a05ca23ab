"""How many people's numbers are clipped is added up with the rest: exactly, or under a budget with its noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.parts.privacy import CLIPPED_SHARE
from fedrecplus.protocol import Upload
from fedrecplus.rounds import add_up, released
from fedrecplus.testing.example import example_config
from tests.secure.test_add_up import changes, in_both_engines, uploads_of

TIGHT = ("channel.bound=0.2", "channel.least_cohort=3", "channel.fewest_contributors=1")
BUDGET = (*changes("uniform", "reconstruction", "whole"), "aggregation.weigh_on=server", "statistics.source=secure-sum")


def beyond(uploads: list[Upload], bound: float) -> int:
    return sum(bool(np.abs(upload.delta).max(initial=0.0) > bound) for upload in uploads)


@pytest.mark.parametrize("masks", ["skipped", "computed"])
@pytest.mark.parametrize("channel", ["channel.rule=secure", "channel.groups=3", "channel.rule=shares"])
def test_everybody_with_a_number_beyond_the_bound_counts_once(channel: str, masks: str) -> None:
    chosen = changes("uniform", "mf", "whole", *TIGHT, channel)
    config, uploads, message = uploads_of(*chosen, f"channel.cryptography={masks}")
    wide = replace(uploads[0], delta=np.full_like(uploads[0].delta, np.nan))
    uploads = [wide, *uploads[1:]]
    sums, _ = add_up(uploads, message, config)
    assert sums.clipped == pytest.approx(1 + beyond(uploads[1:], 0.2), abs=1e-6)
    assert 1 < sums.clipped < len(uploads)


def test_both_engines_count_alike() -> None:
    (((expected, _), (found, _)),) = in_both_engines(example_config(*changes("uniform", "mf", "whole", *TIGHT)))
    assert found.clipped == pytest.approx(expected.clipped, abs=1e-6)
    assert expected.clipped > 0


@pytest.mark.parametrize("rule", ["central", "distributed"])
def test_under_a_budget_clip_and_count_together_are_within_the_norm(rule: str) -> None:
    clip = 2.0
    _, uploads, _ = uploads_of(*BUDGET, f"privacy.rule={rule}", f"privacy.clip={clip}")
    norms = [np.sqrt((one.delta**2).sum() + (CLIPPED_SHARE * clip * one.clipped) ** 2) for one in uploads]
    assert {one.clipped for one in uploads} == {True, False}
    assert max(norms) <= clip
    assert max(norms) == pytest.approx(clip)


def test_a_released_count_has_the_noise_of_every_other_number() -> None:
    """Over many releases: right on average, and as far off as the sums are, in units of a clipped person."""
    config, uploads, message = uploads_of(*BUDGET, "privacy.rule=central", "privacy.clip=2")
    sums, _ = add_up(uploads, message, config)
    noised = [released(sums, 0, message.public, replace(config, seed=seed)) for seed in range(300)]
    unit = CLIPPED_SHARE * 2.0
    counts = np.array([one.clipped for one in noised])
    expected = noised[0].noise / unit
    assert counts.std() == pytest.approx(expected, rel=0.15)
    assert abs(counts.mean() - sums.clipped) < 4 * expected / np.sqrt(len(counts))
