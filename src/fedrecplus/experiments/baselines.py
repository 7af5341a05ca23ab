"""Other models in a comparison: anybody's, as an estimator, a function or an import path; and centralised ones."""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.data import Ratings, Scale
from fedrecplus.errors import UserError
from fedrecplus.training import Predictor

_ASKED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class OutsideModel:
    """A model that doesn't come with the package.

    An estimator is fitted to pairs X, an array of user and item ids, and ratings y, and predicts ratings of pairs, on
    the data's scale. A function gets the training ``Ratings`` and returns a function of user ids and item ids.
    """

    name: str
    source: Any
    """the estimator or function, or its import path: ``my_package.my_models.Mean``, ``my_package.my_models:Mean``"""

    @property
    def portable(self) -> bool:
        """Whether another process can make it: a path can be imported there, an object may not be sent."""
        return isinstance(self.source, str)

    def made(self) -> Any:
        """The estimator or function, new for each training; an error if it is neither."""
        model = _imported(self.source) if isinstance(self.source, str) else self.source
        model = model() if isinstance(model, type) else copy.deepcopy(model)
        if not is_outside_model(model):
            raise UserError(
                f"{self.name} has no fit and predict, and can't be called",
                "give an estimator, or a function of the training ratings that returns a function of users and items",
            )
        return model


def is_outside_model(source: Any) -> bool:
    """Whether something could be compared with: it has ``fit`` and ``predict``, or it is a function."""
    return callable(source) or all(callable(getattr(source, name, None)) for name in ("fit", "predict"))


def is_import_path(name: str) -> bool:
    """Whether an algorithm's name is the import path of somebody's own.

    >>> is_import_path("my_models.Mean"), is_import_path("tuned.toml"), is_import_path("fedrec+")
    (True, False, False)
    """
    return name.replace(":", ".", 1).count(".") >= 1 and not name.endswith(".toml") and "/" not in name


def outside_model(source: Any) -> OutsideModel:
    """What was given instead of an algorithm's name: an import path, an object, or a name and an object."""
    if isinstance(source, str):
        model = OutsideModel(source.replace(":", ".").rpartition(".")[2], source)
        model.made()  # an import that fails is found before anything is trained
        return model
    if isinstance(source, tuple) and len(source) == 2:
        return OutsideModel(str(source[0]), source[1])
    name = getattr(source, "__name__", None) or type(source).__name__
    return OutsideModel(str(name).strip("<>"), source)


def fitted(model: OutsideModel, training: Ratings) -> Predictor:
    """Train it, and give its predictions the form that evaluations ask for."""
    made = model.made()
    if hasattr(made, "fit") and hasattr(made, "predict"):
        made.fit(_pairs(training, training.client_of_rating, training.items), training.values)

        def answer(clients: NDArray[Any], items: NDArray[Any]) -> Any:
            return made.predict(_pairs(training, clients, items))
    else:
        function = made(training)

        def answer(clients: NDArray[Any], items: NDArray[Any]) -> Any:
            return function(training.client_ids[clients], training.item_ids[items])

    return _outside(training, model.name, answer)


@dataclass(frozen=True, kw_only=True)
class OutsidePredictor(Predictor):
    """Predictions of a model of which nothing is known but its answers: its tables have no columns."""

    name: str
    scale: Scale
    answer: Callable[[NDArray[Any], NDArray[Any]], Any]

    def predict(self, clients: NDArray[Any], items: NDArray[Any]) -> Array:
        """Predictions for pairs, in standard units, not clipped."""
        ratings = np.asarray(self.answer(clients, items), dtype=np.float64).reshape(-1)
        if len(ratings) != len(clients) or not np.isfinite(ratings).all():
            what = "numbers that are not finite" if len(ratings) == len(clients) else f"{len(ratings)} predictions"
            raise UserError(f"{self.name} gave {what} for {len(clients)} pairs", "predict a finite rating for each")
        return self.scale.standardise(ratings)

    def of_all_items(self, clients: NDArray[Any]) -> Array:
        """Predictions for all items, a row per client, in standard units."""
        items = len(self.X)
        rows = max(1, _ASKED_AT_ONCE // items)
        parts = [clients[first : first + rows] for first in range(0, len(clients), rows)]
        asked = [self.predict(np.repeat(part, items), np.tile(np.arange(items), len(part))) for part in parts]
        return np.concatenate(asked).reshape(len(clients), items)

    def scores(self, clients: NDArray[Any]) -> Array:
        """The same: such a model ranks by what it predicts."""
        return self.of_all_items(clients)


def _pairs(training: Ratings, clients: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    """User and item ids as an array of two columns: whole numbers where both are, else objects."""
    columns = training.client_ids[clients], training.item_ids[items]
    if all(column.dtype.kind in "iu" for column in columns):
        return np.column_stack(columns)
    pairs = np.empty((len(clients), 2), dtype=object)
    for place, column in enumerate(columns):
        pairs[:, place] = column.tolist()
    return pairs


def _imported(path: str) -> Any:
    """What an import path stands for."""
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{path} can't be imported: {type(error).__name__}: {error}",
            f"give an import path that works: python -c 'from {module} import {name}'",
        ) from None


def chosen(training: Ratings, least: float = 1.0) -> Array:
    """Clients × items: 1 where an item was rated ``least`` or more in standard units, or the mean, if that is less."""
    table = np.zeros((training.clients, training.item_count))
    mask = training.standard_values >= min(least, training.mean()) - 1e-9
    table[training.client_of_rating[mask], training.items[mask]] = 1.0
    return table


def ease(training: Ratings, ridge: float = 500.0, least: float = 1.0) -> Predictor:
    """Scores X B, where B regresses each item's column on all others', without itself. After: Steck 2019"""
    X = chosen(training, least)
    return Predictor(X, _regressed(X, ridge).T, X)


def ease_by_recency(training: Ratings, ridge: float = 500.0, decay: float = 5.0) -> Predictor:
    """The same B, of a history in which a choice weighs .05 + .95 exp(−age/decay). Ours: EASE that knows the order"""
    X, ages = chosen(training), training.ages()
    assert ages is not None
    weighed = np.zeros_like(X)
    weighed[training.client_of_rating, training.items] = 0.05 + 0.95 * np.exp(-ages / decay)
    return Predictor(weighed, _regressed(X, ridge).T, weighed)


def _regressed(X: Array, ridge: float) -> Array:
    gram = X.T @ X
    gram[np.diag_indices_from(gram)] += ridge
    P = np.linalg.inv(gram)
    B = -P / np.diag(P)
    np.fill_diagonal(B, 0.0)
    return np.asarray(B)


def recent_popularity(training: Ratings, share: float = 0.1) -> Predictor:
    """How often an item is among the latest tenth of all ratings."""
    assert training.timestamps is not None
    latest = training.timestamps >= np.quantile(training.timestamps, 1.0 - share)
    counts = np.bincount(training.items[latest], minlength=training.item_count).astype(np.float64)
    everybody = np.ones((training.clients, 1))
    return Predictor(everybody, counts[:, None], everybody)


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
