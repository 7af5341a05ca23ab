"""What every model promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING
from fedrecplus.device import Decoys, Device, Rows, every_item, merge
from fedrecplus.engines import engine_of, item_columns, prepare
from fedrecplus.parts import Model
from fedrecplus.protocol import Broadcast
from fedrecplus.testing.contract import Contract
from fedrecplus.testing.example import batch_of, in_lines, small_ratings


class ModelContract(Contract[Model[Any]]):
    """Predictions of X and dense arrays, which everybody knows, and w, which stays on the device; and rounds that
    lower the error."""

    kind = "model"
    rounds = 10
    """after so many the error on the training ratings must be lower"""

    def X(self) -> NDArray[Any]:
        """The public columns in the example's second round."""
        problem, message, _ = self.round()
        return item_columns(problem, message.V)

    def test_start_values_have_a_row_each_and_do_not_depend_on_who_else_asks(self) -> None:
        """A device that joins later starts where it would have started."""
        problem, message, _ = self.round()
        part, public = self.part, problem.public
        V = part.start_items(3, len(message.V), public)
        assert len(V) == len(message.V)
        assert np.isfinite(V).all()
        assert V.shape[1] == part.columns
        everybody = part.start_users(3, np.arange(20), public)
        assert everybody.shape == (20, part.kept(len(V)))
        np.testing.assert_array_equal(part.start_users(3, np.array([7, 11]), public), everybody[[7, 11]])

    def test_local_training_moves_the_rows_of_the_client_s_items_alone(self) -> None:
        """It returns what stays on the device, and how its rows of V moved."""
        _, message, devices = self.round()
        for device in devices[:5]:
            rows = self.rows(device, message)
            U, delta, statistic = self.part.local_training(device, rows, message)
            assert statistic.shape == (self.part.statistic_size,)
            assert U.shape == device.U.shape
            assert delta.shape == (len(rows.items), message.V.shape[1])
            assert np.isfinite(U).all()
            assert np.isfinite(delta).all()
            assert not np.allclose(delta, 0.0)

    def rows(self, device: Device, message: Broadcast) -> Rows:
        """The rows of a client with three pseudo items; all items, where the model uploads these."""
        if self.part.ALL_ITEMS:
            return every_item(device, len(message.V))
        unrated = np.setdiff1d(np.arange(len(message.V)), device.items)[:3]
        return merge(device, Decoys(unrated, np.full(len(unrated), 3.0)))

    def test_many_clients_at_once_are_as_each_alone(self) -> None:
        """Lines of a batch, padded by rows without an item, change nothing for each other."""
        problem, message, devices = self.round()
        X, public, alone = self.X(), problem.public, devices[:5]
        rows = [self.rows(device, message) for device in alone]
        many = batch_of(alone)
        items, ratings, rated = (list(each) for each in zip(*rows, strict=True))
        together = Rows(in_lines(items, NOTHING), in_lines(ratings), in_lines(rated, False))
        trained, own = self.part.local_training(many, together, message), (many.items, many.ratings)
        weights = self.part.user_weights(many.U, X, *own, public)
        actual = [trained.U, weights, self.part.newcomer(X, message.dense, *own, public)]
        actual += [
            self.part.list_weights(weights, X, *own, public),
            self.part.predict(together.items, many, message, 2),
        ]
        for line, device in enumerate(alone):
            known, n = (device.items, device.ratings, public), len(rows[line].items)
            single = self.part.local_training(device, rows[line], message)
            w = self.part.user_weights(device.U, X, *known)
            expected = [single.U, w, self.part.newcomer(X, message.dense, *known), self.part.list_weights(w, X, *known)]
            expected.append(self.part.predict(rows[line].items, device, message, 2))
            pairs = [*((one[line, : len(other)], other) for one, other in zip(actual, expected, strict=True))]
            pairs.append((trained.delta[line, :n], single.delta))
            if self.part.statistic_size:
                pairs.append((trained.statistic[line], single.statistic))
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)

    def test_predictions_are_scores_of_columns_and_weights(self) -> None:
        """What a device fills with is what it would predict."""
        problem, message, devices = self.round()
        X, every = self.X(), np.arange(len(message.V))
        assert len(X) == len(message.V)
        for device in devices[:5]:
            known = (device.items, device.ratings, problem.public)
            w = self.part.user_weights(device.U, X, *known)
            assert w.shape == (self.part.weight_count(X.shape[1], len(X)),)
            predicted = self.part.predict(every, device, message)
            np.testing.assert_allclose(predicted, self.part.scores(X, w, message.dense), rtol=0, atol=1e-9)

    def test_a_newcomer_gets_weights_from_ratings_alone_even_from_none(self) -> None:
        """It needs no round; with ratings it fits them better than without."""
        problem, message, devices = self.round()
        X, device = self.X(), max(devices, key=lambda device: len(device.items))
        w, nothing = (
            self.part.newcomer(X, message.dense, device.items[:rated], device.ratings[:rated], problem.public)
            for rated in (len(device.items), 0)
        )
        assert w.shape == nothing.shape == (self.part.weight_count(X.shape[1], len(X)),)
        assert np.isfinite(nothing).all()
        predicted = [self.part.scores(X[device.items], weights, message.dense) for weights in (w, nothing)]
        errors = [float(((device.ratings - ratings) ** 2).mean()) for ratings in predicted]
        assert errors[0] < errors[1]

    def test_training_learns_more_than_the_mean(self) -> None:
        """Of the ratings that it is trained on, and V moves."""
        problem = prepare(small_ratings(), self.config("pseudo_items.rule=none"))
        engine = engine_of(problem.config)
        start = state = engine.start(problem)
        for _ in range(self.rounds):
            state, _ = engine.round(problem, state)
        X = item_columns(problem, state.server.V)
        W, ratings = engine.user_weights(problem, state.private, X), problem.ratings
        rows, weights = X[ratings.items][:, None], W[ratings.client_of_rating]
        predicted = self.part.scores(rows, weights, state.server.dense)[:, 0]
        assert ((ratings.standard_values - predicted) ** 2).mean() < ratings.standard_values.var()
        assert not np.allclose(state.server.V, start.server.V)
