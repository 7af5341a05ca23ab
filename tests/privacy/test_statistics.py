"""Popularity and averages from each source, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config, assign, preset
from fedrecplus.engines import prepare, public_items
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import contribution, figures
from fedrecplus.testing import small_ratings

RATINGS = small_ratings(clients=400, items=30)


def statistics(*changes: str) -> object:
    return public_items(RATINGS, assign(preset("fedmf"), [f"statistics.{change}" for change in changes]))


def test_a_secure_sum_without_noise_is_exact_and_says_so() -> None:
    exact, summed = public_items(RATINGS), statistics("source=secure-sum")
    np.testing.assert_array_equal(summed.popularity, exact.popularity)
    assert (summed.source, summed.epsilon, exact.source) == ("secure-sum", None, "participants")


def test_a_secure_sum_with_a_budget_carries_its_cost() -> None:
    exact, noisy = public_items(RATINGS), statistics("source=secure-sum", "epsilon=8")
    assert 7.9 < noisy.epsilon <= 8.0
    assert not np.array_equal(noisy.popularity, exact.popularity)
    assert np.corrcoef(noisy.popularity, exact.popularity)[0, 1] > 0.95
    popular = exact.popularity >= np.median(exact.popularity)
    assert np.corrcoef(noisy.average[popular], exact.average[popular])[0, 1] > 0.8
    assert abs(noisy.mean - exact.mean) < 0.15
    people = {statistics("source=secure-sum", "epsilon=8").people for _ in range(8)}
    assert len(people) > 1  # how many take part is as noisy as the rest, but for rounding
    assert noisy.people == pytest.approx(400, rel=0.25)


def test_statistics_do_not_change_because_somebody_asks_again() -> None:
    config = assign(Config(), ["statistics.source=secure-sum", "statistics.epsilon=1"])
    drawn = [public_items(RATINGS, config).average for _ in range(2)]
    seeded = [public_items(RATINGS, replace(config, seeded_noise=True)).average for _ in range(2)]
    assert not np.array_equal(*drawn)
    np.testing.assert_array_equal(*seeded)


def test_the_denoised_average_is_nearer_than_the_noisy_quotient() -> None:
    rng, cap, items = np.random.default_rng(0), 20, RATINGS.item_count
    total = sum(contribution(*RATINGS.of(client), items, cap) for client in range(RATINGS.clients))
    clean = figures(total, 0.0, cap)
    noisy_total = total + 15.0 * rng.normal(size=total.shape)
    noisy = figures(noisy_total, 15.0, cap)
    quotient = noisy.mean + noisy_total[items:-2] / np.maximum(noisy.popularity, 1)
    assert np.mean((noisy.average - clean.average) ** 2) < 0.5 * np.mean((quotient - clean.average) ** 2)


def test_other_people_s_figures_are_joined_by_id_and_unknown_items_get_the_mean(tmp_path: Path) -> None:
    file = tmp_path / "others.csv"
    file.write_text("userId,movieId,rating\n1,0,5\n2,0,4\n1,3,2\n2,99,3\n")
    public = statistics("source=public", f"file={file}")
    assert public.popularity[[0, 3]].tolist() == [2, 1]
    assert public.popularity.sum() == 3
    assert public.average[0] > public.average[1] > public.average[3]
    assert public.source.startswith("public")
    assert public.epsilon is None


def test_a_public_source_needs_a_file_that_knows_the_items(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"statistics\.file"):
        statistics("source=public")
    file = tmp_path / "others.csv"
    file.write_text("userId,movieId,rating\n1,x,5\n2,y,4\n")
    with pytest.raises(UserError, match="has no item of"):
        statistics("source=public", f"file={file}")


def test_a_budget_of_its_own_needs_a_delta_that_means_something() -> None:
    config = assign(preset("fedmf"), ["statistics.source=secure-sum", "statistics.epsilon=1", "statistics.delta=0.01"])
    with pytest.raises(UserError, match=r"δ = 0\.01"):
        prepare(RATINGS, config)
