"""Models of other libraries in a comparison. Each is an estimator: fit(X, y) and predict(X), X being pairs of ids.

    fedrecplus compare --dataset ml-100k --algorithm fedrec+,examples.baselines.SurpriseSVD

from a folder in which Python finds this file: PYTHONPATH=. does it from a clone. What a model needs is imported when it
is fitted, so that the others work without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class SurpriseSVD:
    """Surprise's SVD (pip install scikit-surprise): predicts ratings."""

    def fit(self, X: Any, y: Any) -> SurpriseSVD:
        """Train on pairs and ratings."""
        from surprise import SVD, Dataset, Reader

        low, high = float(np.min(y)), float(np.max(y))
        rows = [(user, item, rating, None) for (user, item), rating in zip(X.tolist(), y, strict=True)]
        data = Dataset(Reader(rating_scale=(low, high)))
        self.model = SVD(random_state=0).fit(data.construct_trainset(rows))
        return self

    def predict(self, X: Any) -> list[float]:
        """Predicted ratings."""
        return [self.model.predict(user, item).est for user, item in X.tolist()]


class ImplicitALS:
    """implicit's ALS (pip install implicit): scores for lists, whose errors as ratings mean nothing."""

    def __init__(self, factors: int = 32, liked_from: float = 3.0) -> None:
        self.factors, self.liked_from = factors, liked_from

    def fit(self, X: Any, y: Any) -> ImplicitALS:
        """Train on what was liked."""
        from implicit.cpu.als import AlternatingLeastSquares
        from scipy.sparse import csr_matrix

        self.users = {user: number for number, user in enumerate(dict.fromkeys(X[:, 0].tolist()))}
        self.items = {item: number for number, item in enumerate(dict.fromkeys(X[:, 1].tolist()))}
        rows = [self.users[user] for user in X[:, 0].tolist()]
        columns = [self.items[item] for item in X[:, 1].tolist()]
        liked = (np.asarray(y) >= self.liked_from).astype(np.float32)
        choices = csr_matrix((liked, (rows, columns)), shape=(len(self.users), len(self.items)))
        choices.eliminate_zeros()
        model = AlternatingLeastSquares(self.factors, random_state=0, num_threads=1)
        model.fit(choices, show_progress=False)
        # a row of zeros at the end, for users and items that were not in the training ratings
        self.U, self.V = (np.vstack([table, table[:1] * 0]) for table in (model.user_factors, model.item_factors))
        return self

    def predict(self, X: Any) -> Any:
        """Scores."""
        users = [self.users.get(user, -1) for user in X[:, 0].tolist()]
        items = [self.items.get(item, -1) for item in X[:, 1].tolist()]
        return np.einsum("ij,ij->i", self.U[users], self.V[items])


class LensKitBiasedMF:
    """LensKit's biased matrix factorisation (pip install lenskit): predicts ratings."""

    def fit(self, X: Any, y: Any) -> LensKitBiasedMF:
        """Train on pairs and ratings."""
        import pandas as pd
        from lenskit.als import BiasedMFScorer
        from lenskit.data import from_interactions_df
        from lenskit.pipeline import predict_pipeline

        frame = pd.DataFrame({"user_id": X[:, 0], "item_id": X[:, 1], "rating": y})
        self.pipeline = predict_pipeline(BiasedMFScorer(features=32))
        self.pipeline.train(from_interactions_df(frame))
        return self

    def predict(self, X: Any) -> Any:
        """Predicted ratings, user by user; its biases where it knows nothing more."""
        from lenskit import predict
        from lenskit.data import ItemList

        ratings = np.empty(len(X))
        for user in dict.fromkeys(X[:, 0].tolist()):
            own = np.flatnonzero(X[:, 0] == user)
            found = predict(self.pipeline, user, ItemList(item_ids=X[own, 1]))
            ratings[own] = found.scores("numpy")
        return ratings
