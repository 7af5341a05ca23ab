from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.data import Ratings, load
from fedrecplus.data.synthetic.generate import generate
from fedrecplus.data.synthetic.truth import LatentTruth, SyntheticOptions
from fedrecplus.errors import UserError
from fedrecplus.settings import settings_of


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return load("synthetic:clients=3000,items=1000,seed=3")


def same(one: Ratings, other: Ratings) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "items", "codes"))


@settings(max_examples=30)
@given(
    clients=st.integers(2, 60),
    items=st.integers(2, 60),
    share=st.floats(0.01, 1.0),
    popularity=st.floats(0, 2),
    seed=st.integers(0, 2**40),
)
def test_nobody_rates_an_item_twice(clients: int, items: int, share: float, popularity: float, seed: int) -> None:
    per_client = max(1, int(share * items))
    made = generate(
        SyntheticOptions(clients=clients, items=items, ratings_per_client=per_client, popularity=popularity, seed=seed)
    )
    for client in range(made.clients):
        own = made.items[made.indptr[client] : made.indptr[client + 1]].astype(int)
        assert 1 <= len(own) <= items
        assert (np.diff(own) > 0).all()
    assert made.items.max() < items
    assert made.codes.max() < made.scale.levels


def test_the_same_seed_gives_the_same_ratings_in_chunks_of_any_size(ratings: Ratings) -> None:
    options = SyntheticOptions(clients=3000, items=1000, seed=3)
    assert same(generate(options, clients_at_once=77), ratings)
    assert not same(load("synthetic:clients=3000,items=1000,seed=4"), ratings)


def test_a_client_is_the_same_among_few_and_many(ratings: Ratings) -> None:
    few = load("synthetic:clients=100,items=1000,seed=3")
    assert np.array_equal(few.codes, ratings.codes[: len(few)])


def test_activity_is_as_skewed_as_in_movielens(ratings: Ratings) -> None:
    activity = np.diff(ratings.indptr)
    assert activity.mean() == pytest.approx(50, rel=0.1)
    assert 1.4 < activity.mean() / np.median(activity) < 1.9  # MovieLens-100K: 1.63


def test_popularity_follows_zipf_and_popular_items_have_more_ratings(ratings: Ratings) -> None:
    popularity = np.diff(LatentTruth.of(SyntheticOptions(items=1000, seed=3)).cumulative_popularity, prepend=0.0)
    shares = np.sort(popularity)[::-1]
    assert np.allclose(shares * np.arange(1, 1001), shares[0])
    assert np.corrcoef(np.log(popularity), np.log(ratings.item_counts() + 1.0))[0, 1] > 0.95
    even = load("synthetic:clients=3000,items=1000,popularity=0")
    assert even.item_counts().std() / even.item_counts().mean() < 0.15


def test_without_noise_a_rating_is_the_truth_rounded() -> None:
    options = SyntheticOptions(clients=200, items=100, noise=0.0, scale="0.5:5:0.5")
    made = generate(options)
    expected = LatentTruth.of(options).expected(made.client_of_rating.astype(np.int64), made.items.astype(np.int64))
    assert np.abs(made.standard_values - np.clip(expected, 1, 5)).max() <= made.scale.standard_step / 2 + 1e-9


def test_noise_is_as_large_as_asked() -> None:
    options = SyntheticOptions(clients=500, items=200, noise=0.5, scale="-30:30:0.01")
    made = generate(options)
    expected = LatentTruth.of(options).expected(made.client_of_rating.astype(np.int64), made.items.astype(np.int64))
    inside = (expected > 2.9) & (expected < 3.1)
    assert (made.standard_values - expected)[inside].std() == pytest.approx(0.5, rel=0.05)


def test_the_truth_is_of_low_rank() -> None:
    truth = LatentTruth.of(SyntheticOptions(clients=60, items=50, factors=3))
    clients, items = (side.ravel() for side in np.meshgrid(np.arange(60), np.arange(50), indexing="ij"))
    table = truth.expected(clients, items).reshape(60, 50)
    assert np.linalg.matrix_rank(table) == 3 + 2  # and the two biases


def test_genres_tell_of_the_truth(ratings: Ratings) -> None:
    catalogue = ratings.catalogue
    assert catalogue is not None
    assert catalogue.titles[17] == "Item 17"
    assert catalogue.genres.shape == (1000, len(catalogue.genre_names))
    factors = LatentTruth.of(SyntheticOptions(items=1000, seed=3)).item_factors
    assert np.corrcoef(catalogue.genres[:, 0], factors[:, 0])[0, 1] > 0.5


def test_progress_ends_at_the_last_client() -> None:
    calls: list[tuple[str, int, int]] = []
    generate(SyntheticOptions(clients=100), lambda *call: calls.append(call), clients_at_once=30)
    assert [done for _, done, _ in calls] == [30, 60, 90, 100]


def test_the_name_makes_the_same_set_again() -> None:
    made = load("synthetic:clients=30,items=60,noise=0.25,scale=0:10:1")
    assert made.name == "synthetic:clients=30,items=60,noise=0.25,scale=0:10:1"
    assert same(load(made.name), made)


@pytest.mark.parametrize(
    ("settings_text", "message"),
    [
        ("client=5", "did you mean 'clients'"),
        ("clients=many", "not a whole number"),
        ("noise=loud", "not a number"),
        ("noise=nan", "not a number"),
        ("clients=1", "out of range"),
        ("items=10", "nobody rates an item twice"),
        ("scale=1:5", "no rating scale"),
        ("clients", "not a whole number"),
    ],
)
def test_options_that_cannot_be_are_refused(settings_text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load(f"synthetic:{settings_text}")


def test_the_documentation_has_every_option_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", page.partition("## Synthetic")[2].partition("\n## ")[0], re.M)
    assert dict(rows) == {
        each.name: f"{each.default:g}" if isinstance(each.default, float) else str(each.default)
        for each in settings_of(SyntheticOptions)
    }
