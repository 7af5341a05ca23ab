"""Predictions, start values and private refits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from fedrecplus.config import Config, assign
from fedrecplus.config.settings import ModelSettings
from fedrecplus.gradients import errors
from fedrecplus.model import Shape, predict, prior, start_U, start_V, typical
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds.refit import expected, prediction_table, refit

BIASED = ModelSettings(factors=2, biases=True, global_mean=True)


def test_a_prediction_is_mean_and_biases_and_the_inner_product() -> None:
    U = np.array([0.5, 2.0, 1.0, 0.25])  # two factors, the 1 that meets the item bias, the user bias
    V = np.array([[1.0, 0.5, 0.1], [0.0, -1.0, -0.2]])
    assert predict(U, V, 3.5).tolist() == pytest.approx([3.5 + 0.25 + 0.1 + 1.5, 3.5 + 0.25 - 0.2 - 2.0])
    ratings = np.array([5.0, 1.0])
    np.testing.assert_allclose(errors(U, V, ratings - 3.5), ratings - predict(U, V, 3.5), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mean", [0.0, 3.2])
def test_a_constant_start_predicts_its_rating(mean: float) -> None:
    settings = ModelSettings(factors=7, start_rating=4.0, start_spread=0.0)
    U, V = start_U(1, np.arange(3), settings, mean), start_V(1, 5, settings, mean)
    assert predict(U[2], V, mean).tolist() == pytest.approx([4.0] * 5)


@pytest.mark.parametrize("start", ["constant", "normal", "uniform"])
def test_a_client_starts_the_same_whoever_starts_with_it(start: str) -> None:
    settings = ModelSettings(factors=4, start=start, biases=True)  # type: ignore[arg-type]
    together = start_U(1, np.arange(9), settings, 0.0)
    np.testing.assert_allclose(start_U(1, np.array([7, 2]), settings, 0.0), together[[7, 2]], rtol=1e-14)
    assert (together != start_U(2, np.arange(9), settings, 0.0)).any()


def test_the_column_that_meets_the_item_bias_is_one_and_not_trained() -> None:
    shape = Shape.of(BIASED)
    assert (shape.v_columns, shape.u_columns) == (3, 4)
    assert shape.u_trained.tolist() == [1.0, 1.0, 0.0, 1.0]
    assert (start_U(1, np.arange(4), BIASED, 3.5)[:, 2] == 1.0).all()


@pytest.mark.parametrize("biases", ["true", "false"])
@pytest.mark.parametrize("shrink", ["zero", "start", "typical"])
def test_a_refit_is_the_minimum_of_its_objective(biases: str, shrink: str) -> None:
    where = "prediction" if shrink == "typical" else "model"
    changes = [f"model.biases={biases}", f"{where}.shrink_to={shrink}", "model.factors=3", "prediction.floor=0.3"]
    changes.append("prediction.mean_ratings=2")
    config = assign(Config(), changes)
    rng, shape = np.random.default_rng(0), Shape.of(config.model)
    V, ratings, mean = rng.normal(size=(8, shape.v_columns)), rng.uniform(1, 5, 8), 3.0
    start = expected(V, np.arange(8), 3.4, mean, config)
    U_prior, mean_item = start.U, np.average(V, axis=0, weights=np.arange(8))[: shape.factors]
    if shrink != "typical":
        np.testing.assert_array_equal(U_prior, prior(config.model, mean)[0])
    free = shape.u_trained.astype(bool)
    decay = config.prediction.regularisation * 8 + 0.3

    def objective(x: np.ndarray) -> float:
        U = fitted.copy()
        U[free] = x
        surprise = (x - U_prior[free]) @ np.append(mean_item, np.ones(int(config.model.biases)))  # of the mean item
        errors = ratings - predict(U, V, mean)
        return float((errors**2).sum() + decay * ((x - U_prior[free]) ** 2).sum() + 2 * surprise**2)

    fitted = refit(V, ratings, mean, config, start)
    if config.model.biases:
        assert fitted[shape.factors] == 1.0
    best = scipy.optimize.minimize(objective, np.zeros(int(free.sum())), tol=1e-12)
    np.testing.assert_allclose(fitted[free], best.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("settings", [ModelSettings(factors=2), BIASED], ids=["plain", "biased"])
def test_the_typical_person_is_the_nearest_to_the_mean_rating_along_the_mean_row(settings: ModelSettings) -> None:
    rng, popularity = np.random.default_rng(1), np.array([9, 1, 0, 5])
    V = 1.0 + 0.3 * rng.normal(size=(4, Shape.of(settings).v_columns))
    U = typical(V, popularity, 3.7, settings, 0.5)
    average = np.average(V, axis=0, weights=popularity)
    assert U[0] / U[1] == pytest.approx(average[0] / average[1])

    def error(length: float) -> float:
        rows = V[:, :2] @ (length * U[:2]) + 0.5 + (average[2] if settings.biases else 0.0)
        return float(popularity @ (rows - 3.7) ** 2)

    assert error(1.0) < min(error(0.99), error(1.01))
    assert U[2:].tolist() == [0.0] * (Shape.of(settings).u_columns - 2)


def test_where_the_mean_row_says_nothing_nobody_is_typical() -> None:
    V = np.array([[1.0, -2.0], [-1.0, 2.0]])
    assert typical(V, np.array([3, 3]), 3.5, ModelSettings(factors=2), 0.0).tolist() == [0.0, 0.0, 0.0]


COUNTS, AVERAGE = np.array([1, 2, 30, 400, 0]), np.array([1.5, 3.0, 4.5, 3.0, 2.0])


def rows_held(biases: str, weight: float, average: np.ndarray = AVERAGE) -> tuple[np.ndarray, np.ndarray, Config]:
    changes = [f"model.biases={biases}", "model.factors=3", "prediction.factors=refit"]
    config = assign(Config(), [*changes, f"prediction.average_ratings={weight}"])
    V = np.random.default_rng(1).normal(1.0, 0.3, size=(5, Shape.of(config.model).v_columns))
    public = PublicItems(np.zeros((5, 0)), COUNTS, average)
    return V, prediction_table(V, public, 3.1, 0.0, config), config


@pytest.mark.parametrize("biases", ["true", "false"])
def test_a_row_goes_to_its_public_average_by_the_weight_of_both(biases: str) -> None:
    V, held, config = rows_held(biases, 10.0)
    mean_row = np.average(V, axis=0, weights=COUNTS)
    V[4] = mean_row  # nobody rated it
    U = typical(V, COUNTS, 3.1, config.model, 0.0)
    U[3 : 3 + int(config.model.biases)] = 1.0
    before, after = predict(U, V, 0.0), predict(U, held, 0.0)
    np.testing.assert_allclose(after, (COUNTS * before + 10.0 * AVERAGE) / (COUNTS + 10.0), rtol=0, atol=1e-12)
    across = np.eye(V.shape[1]) - np.outer(U[:-1], U[:-1]) / (U[:-1] @ U[:-1])
    np.testing.assert_allclose((held - V) @ across, 0.0, atol=1e-12)  # along the typical person, and nowhere else


def test_rows_stay_where_they_are_without_weight() -> None:
    V, held, _ = rows_held("false", 0.0)
    assert held is V


def test_without_public_averages_only_an_item_that_nobody_rated_changes() -> None:
    V, held, _ = rows_held("false", 10.0, np.zeros(0))
    np.testing.assert_array_equal(held[:4], V[:4])
    np.testing.assert_allclose(held[4], np.average(V, axis=0, weights=COUNTS))
