"""An estimator as scikit-learn knows them: settings at first, then ``fit``, then ``predict``."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fedrecplus.config import Config, budget_of, change, check, load_config, preset, with_budget, with_channel
from fedrecplus.data import (
    FileOptions,
    Ratings,
    Scale,
    as_polars,
    backend_of,
    check_rated,
    frame_of,
    is_frame,
    load,
    pair_columns,
    ratings_of_frame,
    tabular,
)
from fedrecplus.errors import DataWarning, NotFittedError, UserError, unknown_name
from fedrecplus.files import check_writable
from fedrecplus.training.callbacks import Callback
from fedrecplus.training.choosing import AUTO, FALLBACK, RATINGS, choose
from fedrecplus.training.lists import ListChoices, ListOptions
from fedrecplus.training.loop import train
from fedrecplus.training.recommender import Person, Recommender
from fedrecplus.training.run import Run

_OWN = (
    *("algorithm", "channel", "epsilon", "delta", "noise", "simulation_only"),
    *("user", "item", "rating", "timestamp", "items", "listed", "scale", "duplicates", "missing", "on_error", "seed"),
)
_ELSEWHERE = {
    "random_state": "seed",
    **dict.fromkeys(("n_factors", "factors", "embedding_size"), "model__factors"),
    **dict.fromkeys(("n_epochs", "epochs", "iterations", "rounds"), "server__rounds"),
}
"""what a parameter is called in other libraries → and here"""
Pairs = Any
"""a frame with a user and an item column, an array of two columns, or a list of pairs"""


class FedRec:
    """A federated recommender, simulated in one process, with scikit-learn's manners.

    ``algorithm`` is a preset, a TOML file or a ``Config``. If none is given, ``fit`` takes what suits the ratings, by a
    validation cut of them, and ``choice_`` says why; with settings, a channel or a budget of your own it takes
    ``fedrec+secure``. Any setting of it is a parameter, with two underscores for
    the dot: ``FedRec("fedrec+", model__factors=16)``; these come last. ``channel`` is what hides uploads from the
    server, as ``--channel`` of the command line (``clear``, ``secure`` and so on). ``epsilon``, with ``delta`` and
    ``noise``, is a budget of differential privacy per person, as ``--epsilon``; its noise is the operating system's,
    or with ``seeded_noise=True``, for research alone, the seed's. ``user``, ``item``, ``rating``,
    ``timestamp`` name columns of frames, where these have unusual names; ``items`` is a frame or a file that
    describes the items; with ``listed=True`` it is the list of all of them, public before anybody rated, which a
    budget needs.

    >>> frame = pl.DataFrame({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 8], "rating": [5, 1, 4, 2, 3]})
    >>> model = FedRec("fedmf", server__rounds=3).fit(frame)
    >>> model.predict([(1, 9), (3, 7)]).shape
    (2,)
    >>> model.recommend([3], n=1).columns
    ['user', 'rank', 'item', 'score', 'rating', 'title']
    """

    def __init__(
        self,
        algorithm: str | Config = AUTO,
        *,
        channel: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        noise: str | None = None,
        simulation_only: bool = False,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: str | None = None,
        items: Any = None,
        listed: bool = False,
        scale: Scale | str | None = None,
        duplicates: str = "error",
        missing: str = "error",
        on_error: str = "error",
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self.algorithm, self.channel, self.simulation_only = algorithm, channel, simulation_only
        self.epsilon, self.delta, self.noise = epsilon, delta, noise
        self.user, self.item, self.rating, self.timestamp = user, item, rating, timestamp
        self.items, self.listed = items, listed
        self.scale, self.duplicates, self.seed = scale, duplicates, seed
        self.missing, self.on_error = missing, on_error
        self.settings: dict[str, Any] = {}
        self._set_settings(settings)

    def __repr__(self) -> str:
        own = {name: "a frame" if is_frame(value := getattr(self, name)) else value for name in _OWN[1:]}
        own = {name: value for name, value in own.items() if value not in (None, 0, False, "error")}
        shown = [f"{name}={value!r}" for name, value in {**own, **self.settings}.items()]
        name = self.algorithm.algorithm if isinstance(self.algorithm, Config) else self.algorithm
        return f"FedRec({', '.join([repr(name), *shown])})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters, as they were given."""
        return {**{name: getattr(self, name) for name in _OWN}, **self.settings}

    def set_params(self, **params: Any) -> FedRec:
        """Change parameters; an unknown setting is an error."""
        for name in _OWN:
            if name in params:
                setattr(self, name, params.pop(name))
        self._set_settings(params)
        _ = self.config  # a misspelt setting is found here, not after hours of a grid search
        return self

    @property
    def config(self) -> Config:
        """The complete settings of the training; of one with a budget, before the number of people is known."""
        return check(self._assigned(self._start()))

    def _start(self) -> Config:
        """The algorithm's settings, with seed and channel."""
        if isinstance(self.algorithm, Config):
            config = self.algorithm
        else:
            name = RATINGS if self.algorithm == AUTO else self.algorithm
            config = load_config(name) if name.endswith(".toml") else preset(name)
        config = change(config, "seed", self.seed, "FedRec")
        if self.simulation_only:
            config = change(config, "simulation_only", True, "FedRec")
        return with_channel(config, self.channel)

    @property
    def _changed(self) -> bool:
        """Whether something was asked for that is of one algorithm."""
        return bool(self.settings) or self.simulation_only or self.channel is not None or self.epsilon is not None

    def _assigned(self, config: Config) -> Config:
        """With the settings that were given one by one; rules come first, since they bring the options."""
        for name in sorted(self.settings, key=lambda name: not name.endswith("__rule")):
            config = change(config, name.replace("__", "."), self.settings[name], "FedRec")
        return config

    def _config_for(self, clients: int) -> Config:
        """The settings for so many people, which a budget depends on."""
        budget = budget_of(self.epsilon, self.delta, self.noise, self.channel)
        if budget is None:
            return self.config
        return check(self._assigned(with_budget(self._start(), *budget, clients)))

    def fit(self, X: Any, y: Any = None, *, callbacks: Sequence[Callback] = ()) -> FedRec:
        """Train on ratings, or on pairs ``X`` with ratings ``y``.

        Ratings are a frame, a file, a data set's name, ``Ratings``, a sparse matrix of users × items, or rows of
        user, item, rating and maybe time: an array, or a list of tuples.
        """
        self.backend_ = backend_of(X)
        ratings = self._ratings(X) if y is None else self._ratings_of_pairs(X, y)
        if self.algorithm == AUTO and not self._changed:
            choice = choose(ratings, self.seed)
            config, about = choice.config, {"choice": choice.why}
            self.choice_: str = f"{config.algorithm}: {choice.why}"
            if config.algorithm == FALLBACK:
                warnings.warn(self.choice_, DataWarning, stacklevel=2)
        else:
            config, about = self._config_for(ratings.clients), {}
        self.run_: Run = train(ratings, None, config, callbacks=callbacks, about_data=about)
        self.recommender_ = self.run_.recommender
        self.n_features_in_ = 2
        return self

    def predict(self, X: Pairs) -> NDArray[np.float64]:
        """Predicted ratings of pairs (user, item), on the data's scale; cold ones get the fallback's."""
        users, items = self._pairs(X)
        return self._fitted().predict_pairs(users, items)

    def predict_frame(self, X: Pairs, backend: str | None = None) -> Any:
        """The same as a frame with columns user, item and prediction, in the library of ``X``."""
        users, items = self._pairs(X)
        columns: dict[str, Any] = {
            "user": users,
            "item": items,
            "prediction": self._fitted().predict_pairs(users, items),
        }
        return frame_of(columns, backend or (backend_of(X) if is_frame(X) else self.backend_))

    def recommend(
        self,
        users: Sequence[Any] | Any,
        n: int = 10,
        *,
        backend: str | None = None,
        **options: Unpack[ListChoices],
    ) -> Any:
        """The n best items of each user as a frame, best first: columns user, rank, item, score, rating and title.

        ``score`` is what ranks: the model's score for lists or, with ``by="rating"`` and in models without one, the
        predicted rating in standard units. ``why`` adds the column because: ids of the user's own items that speak most
        for the item, a list each. ``ListOptions`` has all options. The frame is of the library that ``fit`` was given.
        """
        wanted = [users] if isinstance(users, str | int | np.integer) else list(users)
        return frame_of(self._fitted().lists(wanted, ListOptions(n, **options)), backend or self.backend_)

    def similar_items(self, item: Any, n: int = 10, *, backend: str | None = None) -> Any:
        """The n items that are most like one, as a frame with columns item, similarity and title."""
        return frame_of(self._fitted().similar_items(item, n), backend or self.backend_)

    def fold_in(self, ratings: Mapping[Any, float] | Iterable[tuple[Any, float]]) -> Person:
        """A newcomer, by item id → rating, whose ``recommend`` gives a frame, too; nothing is trained again."""
        return replace(self._fitted().fold_in(ratings), backend=self.backend_)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the RMSE on test ratings, so that greater is better; also of a frame that has the ratings in it."""
        if y is None:
            model = self._fitted().model
            test = self._ratings(X, scale=model.scale, few=True)
            check_rated(test, model.likes_alone)
            X, y = list(zip(*(test.to_frame()[name].to_list() for name in ("user", "item")), strict=True)), test.values
        difference = self.predict(X) - np.asarray(y, dtype=np.float64)
        return -float(np.sqrt(np.mean(difference**2)))

    def save(self, folder: str | Path) -> None:
        """Write the model and, in a file of its own, the simulated clients' private parts into a folder.

        One that isn't there yet is made for its owner alone.
        """
        recommender = self._fitted()
        check_writable(Path(folder))
        Path(folder).mkdir(parents=True, exist_ok=True, mode=0o700)
        recommender.save(folder)

    @classmethod
    def load(cls, folder: str | Path, allow: Collection[str] = ()) -> FedRec:
        """A fitted estimator from what ``save``, or ``fedrecplus train``, wrote.

        ``allow`` names rules from outside the package that it may import.
        """
        recommender = Recommender.load(folder, allow)
        loaded = cls(recommender.model.config, scale=recommender.model.scale, seed=recommender.model.config.seed)
        loaded.recommender_, loaded.backend_, loaded.n_features_in_ = recommender, "polars", 2
        return loaded

    @property
    def item_ids_(self) -> NDArray[Any]:
        """The ids of the items, in the order of ``item_factors_``."""
        return self._fitted().model.item_ids

    @property
    def user_ids_(self) -> NDArray[Any]:
        """The ids of the users, in the order of ``user_factors_``."""
        return self._fitted().clients.client_ids

    @property
    def item_factors_(self) -> NDArray[np.float64]:
        """A row per item, which everybody knows: ``user_factors_ @ item_factors_.T`` are all predictions.

        They are in standard units, on which the scale's lowest rating is 1 and its highest 5.
        """
        return self._fitted().model.X

    @property
    def user_factors_(self) -> NDArray[Any]:
        """A row per user; in a deployment it is on the user's device alone."""
        return self._fitted().clients.W

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "recommender_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags  # it is scikit-learn that asks

        target, inputs = TargetTags(required=False), InputTags(string=True, allow_nan=False)
        return Tags("regressor", target, regressor_tags=RegressorTags(), input_tags=inputs)

    def _set_settings(self, settings: Mapping[str, Any]) -> None:
        for name in settings:
            if name in _ELSEWHERE:
                raise UserError(f"unknown parameter {name!r}", f"here it is called {_ELSEWHERE[name]}")
            if "__" not in name:
                raise unknown_name("parameter", name, [*_OWN, "model__factors, and so on for every setting"])
        self.settings = {**self.settings, **settings}

    def _fitted(self) -> Recommender:
        if not hasattr(self, "recommender_"):
            raise NotFittedError("this estimator isn't fitted", "call fit(ratings) first")
        return self.recommender_

    def _options(self, scale: Scale | str | None) -> FileOptions:
        path = str(self.items) if isinstance(self.items, str | Path) else None
        columns: dict[str, Any] = {name: getattr(self, name) for name in ("user", "item", "rating", "timestamp")}
        return FileOptions(**columns, scale=scale, items=path, **self._treatment())

    def _treatment(self) -> dict[str, Any]:
        """What is done with rows that are no plain ratings."""
        return {name: getattr(self, name) for name in ("duplicates", "listed", "missing", "on_error")}

    def _ratings(self, source: Any, scale: Scale | str | None = None, few: bool = False) -> Ratings:
        options = self._options(scale or self.scale)
        if (table := tabular(source)) is not None:
            return ratings_of_frame(table, options, "frame", self.items, few=few)
        return load(source, options=options if isinstance(source, str | Path) else None)

    def _ratings_of_pairs(self, X: Any, y: Any) -> Ratings:
        users, items = self._pairs(X)
        values = _numbers_or_text(y)
        if len(values) != len(users):
            raise UserError(f"X has {len(users)} pairs and y {len(values)} ratings", "give a rating for each pair")
        frame = pl.DataFrame({"user": users, "item": items, "rating": values}, strict=False)
        options = FileOptions("user", "item", "rating", scale=self.scale, **self._treatment())
        return ratings_of_frame(frame, options, "X, y", self.items)

    def _pairs(self, X: Pairs) -> tuple[list[Any], list[Any]]:
        """Users and items, as ids that are the same whether they come from a frame or an array."""
        if isinstance(X, Ratings):
            X = X.to_frame()
        if is_frame(X):
            frame = as_polars(X, "X")
        else:
            array = np.asarray(X)
            array = array if array.size else array.reshape(0, 2)
            if array.ndim != 2 or array.shape[1] < 2:
                raise UserError(f"X has the shape {array.shape}", "give a row of user and item for each pair")
            frame = pl.DataFrame({"user": array[:, 0].tolist(), "item": array[:, 1].tolist()}, strict=False)
        return pair_columns(frame, self._options(None))


def _numbers_or_text(y: Any) -> list[Any]:
    """Ratings as numbers; where some are none, as the text that an error will show."""
    try:
        return np.asarray(y, dtype=np.float64).reshape(-1).tolist()
    except (TypeError, ValueError):
        return [str(value) for value in y]
