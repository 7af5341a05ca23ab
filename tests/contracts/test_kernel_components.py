"""Curves over item columns, which ``joint`` adds to straight lines: a Gaussian process, written out by its formula."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.parts import Model
from fedrecplus.protocol import PublicItems

ITEMS, FACTORS = 90, 4
DICE = np.random.default_rng(4)
PUBLIC = PublicItems(
    np.zeros((ITEMS, 0)), DICE.integers(20, 400, ITEMS), average=DICE.uniform(2.5, 4.5, ITEMS), people=500
)
V = DICE.normal(size=(ITEMS, 2 * FACTORS))


def model(kernel_scale: float) -> Model:
    sizes = {"factors": FACTORS, "interaction_factors": FACTORS, "user_mean": 0.0}
    return Model.choose("joint", kernel_scale=kernel_scale, **sizes)


def predictions(kernel_scale: float, items: np.ndarray, ratings: np.ndarray, table: np.ndarray = V) -> np.ndarray:
    chosen = model(kernel_scale)
    X = chosen.item_columns(table, PUBLIC)
    return X @ chosen.fold_in(X, items, ratings, PUBLIC)


def kernel_by_its_formula() -> np.ndarray:
    shares = PUBLIC.popularity / PUBLIC.popularity.sum()

    def standardised(columns: np.ndarray) -> np.ndarray:
        centred = columns - shares @ columns
        return centred / np.sqrt(shares @ (centred**2).sum(axis=1))

    def over_ratings(values: np.ndarray) -> np.ndarray:
        centred = values - shares @ values
        return np.clip(centred / np.sqrt(shares @ centred**2), -3, 3)

    known = np.stack([over_ratings(np.log1p(PUBLIC.popularity)), over_ratings(PUBLIC.averages())], axis=1)
    features = np.hstack([standardised(one) for one in (known, V[:, FACTORS:], V[:, :FACTORS])])
    length = 0.3 * np.sqrt(2 * 3)
    return np.array([[np.exp(-((a - b) ** 2).sum() / (2 * length**2)) for b in features] for a in features])


def test_predictions_are_the_mean_of_a_gaussian_process() -> None:
    items, scale = DICE.choice(ITEMS, 15, replace=False), 0.8
    ratings, curved = DICE.integers(1, 6, 15).astype(float), model(scale)
    X = curved.item_columns(V, PUBLIC)
    prior = np.zeros(X.shape[1])
    prior[-FACTORS:] = curved.prior_from_choices(X, items, PUBLIC)
    straight = model(0.0)
    ridge, _ = straight.ridge_and_prior(straight.item_columns(V, PUBLIC).shape[1] - 1, items, np.ones(15), PUBLIC)
    lines = straight.item_columns(V, PUBLIC)[:, 1:]
    noise = ridge[0]
    covariance = noise * (lines / ridge) @ lines.T + scale**2 * kernel_by_its_formula()
    mean = X[:, 0] + X @ prior
    weights = np.linalg.solve(covariance[np.ix_(items, items)] + noise * np.eye(15), (ratings - mean[items]))
    expected = mean + covariance[:, items] @ weights
    np.testing.assert_allclose(predictions(scale, items, ratings), expected, rtol=0, atol=1e-4)


def test_a_curve_finds_who_likes_what_is_in_the_middle_and_lines_do_not() -> None:
    place = DICE.uniform(-1.5, 1.5, ITEMS)  # of all that is learnt of an item
    table, liking = np.repeat(place[:, None], 2 * FACTORS, axis=1), 3.0 + 1.5 * np.cos(2.0 * place)
    rated, others = np.arange(60), np.arange(60, ITEMS)
    straight, curved = (predictions(scale, rated, liking[rated], table)[others] for scale in (0.0, 1.0))
    assert np.std(curved - liking[others]) < 0.6 * np.std(straight - liking[others])


def test_other_arrays_have_the_same_columns() -> None:
    torch = pytest.importorskip("torch")
    columns = model(0.5).item_columns(torch.as_tensor(V), PUBLIC)
    np.testing.assert_allclose(columns.numpy(), model(0.5).item_columns(V, PUBLIC), rtol=0, atol=1e-12)


def test_no_upload_is_fitted_to_the_curve() -> None:
    np.testing.assert_array_equal(model(0.5).solved_columns(V, PUBLIC), model(0.0).solved_columns(V, PUBLIC))
