"""Centralised models to set beside federated ones: whoever has all ratings in one place gets these figures."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.experiments.baselines import OutsidePredictor
from fedrecplus.training.evaluation import Predictor

Array = NDArray[np.float64]


def chosen(training: Ratings, least: float = 1.0) -> Array:
    """Clients × items: 1 where an item was rated ``least`` or more in standard units, or the mean, if that is less."""
    table = np.zeros((training.clients, training.item_count))
    mask = training.standard_values >= min(least, training.mean()) - 1e-9
    table[training.client_of_rating[mask], training.items[mask]] = 1.0
    return table


def ease(training: Ratings, ridge: float = 500.0, least: float = 1.0) -> Predictor:
    """Scores X B, where B regresses each item's column on all others', without itself. After: Steck 2019"""
    X = chosen(training, least)
    gram = X.T @ X
    gram[np.diag_indices_from(gram)] += ridge
    P = np.linalg.inv(gram)
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return Predictor(X, B.T, X)


def ials(
    training: Ratings, factors: int = 64, ridge: float = 0.007, unobserved: float = 0.3, epochs: int = 12
) -> Predictor:
    """Scores U Vᵀ of choices, by alternating least squares; a row's ridge grows with what is behind it.

    After: Rendle et al. 2022 (iALS revisited), whose settings these are
    """
    rng, X = np.random.default_rng(0), chosen(training) > 0
    U, V = (0.1 / np.sqrt(factors) * rng.normal(size=(n, factors)) for n in X.shape)
    for _ in range(epochs):
        U = _solved(V, X, ridge, unobserved)
        V = _solved(U, X.T, ridge, unobserved)
    return Predictor(U, V, U)


def _solved(table: Array, X: NDArray[np.bool_], ridge: float, unobserved: float) -> Array:
    """Each row's u of (a VᵀV + Σ_chosen v vᵀ + λ(n + a N) I) u = Σ_chosen v."""
    gram, eye = unobserved * table.T @ table, np.eye(table.shape[1])
    rows = np.zeros((len(X), table.shape[1]))
    for row in range(len(X)):
        own = table[X[row]]
        own_ridge = ridge * (len(own) + unobserved * len(table))
        rows[row] = np.linalg.solve(gram + own.T @ own + own_ridge * eye, own.sum(axis=0))
    return rows


def svdpp(training: Ratings) -> Predictor:
    """Surprise's SVD++ as it comes. After: Koren 2008"""
    surprise: Any = importlib.import_module("surprise")
    pairs = zip(training.client_of_rating.tolist(), training.items.tolist(), training.values.tolist(), strict=True)
    reader = surprise.Reader(rating_scale=(training.scale.low, training.scale.high))
    rows = [(str(client), str(item), rating, None) for client, item, rating in pairs]
    data = surprise.Dataset(reader=reader).construct_trainset(rows)
    model = surprise.SVDpp(random_state=0).fit(data)

    def answer(clients: NDArray[Any], items: NDArray[Any]) -> Array:
        pairs = zip(clients.tolist(), items.tolist(), strict=True)
        return np.array([model.predict(str(client), str(item)).est for client, item in pairs])

    return _outside(training, "SVD++", answer)


def myfm(training: Ratings) -> Predictor:
    """Bayesian factorisation machines of the package myFM, users and items alone, rank 10, 512 samples."""
    package, sparse = importlib.import_module("myfm"), importlib.import_module("scipy.sparse")
    model: Any = package.MyFMRegressor(rank=10, random_seed=0)

    def design(clients: NDArray[Any], items: NDArray[Any]) -> Any:
        columns = np.stack([clients.astype(np.int64), training.clients + items.astype(np.int64)], axis=1).reshape(-1)
        rows, shape = np.repeat(np.arange(len(clients)), 2), (len(clients), training.clients + training.item_count)
        return sparse.csr_matrix((np.ones(len(columns)), (rows, columns)), shape=shape)

    model.fit(design(training.client_of_rating, training.items), training.values, n_iter=512)
    return _outside(training, "myFM", lambda clients, items: model.predict(design(clients, items)))


def _outside(training: Ratings, name: str, answer: Callable[[NDArray[Any], NDArray[Any]], Any]) -> Predictor:
    W, X = np.zeros((training.clients, 0)), np.zeros((training.item_count, 0))
    return OutsidePredictor(W, X, name=name, scale=training.scale, answer=answer)


def installed(package: str) -> bool:
    """Whether a package is there."""
    return importlib.util.find_spec(package) is not None
