"""What rules of pseudo items and virtual ratings, encoders, mechanisms and server optimizers promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, Array
from fedrecplus.data import Scale
from fedrecplus.device import Device
from fedrecplus.errors import UserError
from fedrecplus.parts import Encoder, Mechanism, PseudoItems, ServerOptimizer, VirtualRatings, unit_rows
from fedrecplus.parts.pseudo_items import Count
from fedrecplus.parts.virtual_ratings import put_on_scale
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import client_round, predictions_of, pseudo_items
from fedrecplus.testing.contract import Contract
from fedrecplus.testing.example import batch_of


class PseudoItemsContract(Contract[PseudoItems[Any]]):
    """Unrated items, as many as asked for, by the client, its secret and the broadcast alone."""

    kind = "pseudo_items"

    def select(self, count: Count, device: Device, *more: str) -> NDArray[np.int64]:
        """A client's set."""
        problem, message, _ = self.round(*more)
        return problem.config.pseudo_items.select(count, device, message)

    @property
    def devices(self) -> list[Device]:
        """The example's clients."""
        return self.round()[2]

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of pseudo items to ask for; rules that hide nothing are never asked for any."""
        return (0, 1, 7, 40) if self.part.HIDES else (0,)

    def test_a_set_is_of_unrated_items_as_many_as_asked_for_ascending(self) -> None:
        """All unrated ones where there are no more."""
        items = self.round()[0].ratings.item_count
        for device in self.devices:
            for count in self.counts:
                chosen = self.select(count, device)
                assert np.issubdtype(chosen.dtype, np.integer)
                assert len(chosen) == min(count, items - len(device.items))
                assert (np.diff(chosen) > 0).all()
                assert not np.isin(chosen, device.items).any()
                assert ((chosen >= 0) & (chosen < items)).all()

    def test_a_client_that_rated_nothing_has_no_pseudo_items(self) -> None:
        """Its empty upload would give away that it has none."""
        problem, message, devices = self.round()
        newcomer = replace(devices[0], items=np.empty(0, np.int64), ratings=np.empty(0))
        assert len(self.select(0, newcomer)) == 0
        assert len(pseudo_items(message, newcomer, problem.config).items) == 0

    def test_the_same_client_chooses_the_same_whoever_was_asked_before(self) -> None:
        """No state between calls: a device alone must draw what it draws in a simulation."""
        count = self.counts[-2] if len(self.counts) > 1 else 0
        forwards = [self.select(count, device) for device in self.devices]
        backwards = [self.select(count, device) for device in reversed(self.devices)][::-1]
        for first, second in zip(forwards, backwards, strict=True):
            np.testing.assert_array_equal(first, second)

    def test_a_batch_of_clients_chooses_what_each_chooses_alone(self) -> None:
        """With −1 after the last item of those who have fewer than others."""
        devices, items = self.devices, self.round()[0].ratings.item_count
        for count in self.counts:
            each = np.array([min(count + place % 3, items - len(one.items)) for place, one in enumerate(devices)])
            each *= self.part.HIDES
            together = self.select(each, batch_of(devices))
            assert together.shape == (len(devices), each.max())
            for line, number, device in zip(together, each.tolist(), devices, strict=True):
                np.testing.assert_array_equal(line[:number], self.select(number, device))
                assert (line[number:] == NOTHING).all()


SCALES = (Scale(1.0, 5.0, 1.0), Scale(0.5, 5.0, 0.5), Scale(0.0, 100.0, 1.0), Scale(0.0, 1.0, 1.0))


class VirtualRatingsContract(Contract[VirtualRatings[Any]]):
    """One finite rating per item, on the scale where that is asked for, by item, client and broadcast alone."""

    kind = "virtual_ratings"

    def fill(self, items: NDArray[np.int64], device: Device, *more: str, scale: Scale | None = None) -> Array:
        """Virtual ratings before they are put on the scale."""
        problem, message, _ = self.round(*more, scale=scale)
        predict = predictions_of(device, message, problem.config)
        return problem.config.virtual_ratings.fill(items, device, message, predict)

    def test_every_item_gets_one_finite_rating_whichever_others_are_asked_for(self) -> None:
        """And the same one when asked again."""
        for device in self.round()[2]:
            items = unrated(device)
            ratings = self.fill(items, device)
            assert ratings.shape == items.shape
            assert np.isfinite(ratings).all()
            np.testing.assert_array_equal(self.fill(items, device), ratings)
            np.testing.assert_allclose(self.fill(items[::2], device), ratings[::2], rtol=0, atol=1e-12)

    def test_a_batch_of_clients_is_given_what_each_is_given_alone(self) -> None:
        """What stands for no item is of no account."""
        devices = self.round()[2]
        items = [unrated(device)[:12] for device in devices]
        alone = [self.fill(own, device) for own, device in zip(items, devices, strict=True)]
        together = self.fill(np.stack(items), batch_of(devices))
        np.testing.assert_allclose(together, np.stack(alone), rtol=0, atol=1e-10)

    def test_what_is_uploaded_is_on_the_scale(self) -> None:
        """A value off the scale would tell the server that an item is not really rated."""
        for scale in SCALES:
            for rounding in ("none", "nearest", "stochastic"):
                more = f"virtual_ratings.rounding={rounding}"
                problem, message, devices = self.round(more, scale=scale)
                for device in devices[:8]:
                    items = unrated(device)
                    options = problem.config.virtual_ratings.settings
                    raw = self.fill(items, device, more, scale=scale)
                    ratings = put_on_scale(raw, items, device, options, message.round)
                    assert ((ratings >= 1.0) & (ratings <= 5.0)).all()
                    assert rounding == "none" or scale.holds(scale.restore(ratings)).all()


def unrated(device: Device) -> NDArray[np.int64]:
    """The example's items that a client hasn't rated."""
    return np.setdiff1d(np.arange(40), device.items)


class EncoderContract(Contract[Encoder[Any]]):
    """One finite row per item, by V and public things alone."""

    kind = "encoder"

    def encode(self, V: Array, public: PublicItems) -> Array:
        """The features of items."""
        return self.part.encode(V, public)

    def test_every_item_has_one_finite_row_and_the_same_when_asked_again(self) -> None:
        """Also where all items are alike and nobody has rated any."""
        _, message, _ = self.round()
        nobody = replace(message.public, popularity=np.zeros(len(message.V), np.int64))
        for V, public in ((message.V, message.public), (np.full_like(message.V, 0.5), nobody)):
            features = self.encode(V, public)
            assert features.shape[0] == len(V)
            assert features.ndim == 2
            assert np.isfinite(features).all()
            np.testing.assert_array_equal(self.encode(V, public), features)

    def test_likeness_does_not_depend_on_how_items_are_numbered(self) -> None:
        """An item number means nothing."""
        _, message, _ = self.round()
        public, order = message.public, np.random.default_rng(1).permutation(len(message.V))
        shuffled = replace(
            public,
            content=public.content[order],
            popularity=public.popularity[order],
            average=public.average[order],
            years=public.years[order],
        )
        plain, other = unit_rows(self.encode(message.V, public)), unit_rows(self.encode(message.V[order], shuffled))
        np.testing.assert_allclose(other @ other.T, (plain @ plain.T)[np.ix_(order, order)], rtol=0, atol=1e-9)

    def test_without_a_catalogue_it_works_or_says_what_else_would(self) -> None:
        """Most data sets have no catalogue."""
        _, message, _ = self.round()
        remedy, features = "encoder.rule=", np.zeros(0)
        try:
            features = self.encode(message.V, PublicItems(np.zeros((len(message.V), 0)), message.public.popularity))
        except UserError as error:
            remedy = error.remedy
        assert "encoder.rule=" in remedy
        assert np.isfinite(features).all()


AGGREGATE = np.random.default_rng(0).normal(size=(6, 3))
AGGREGATE.flags.writeable = False


class ServerOptimizerContract(Contract[ServerOptimizer[Any]]):
    """A step from the aggregate and as many tables as it says it keeps."""

    kind = "server_optimizer"

    def at_rest(self, dtype: str = "float64") -> list[Array]:
        """Its tables before the first round, which can't be written."""
        tables = [np.zeros(AGGREGATE.shape, dtype=dtype) for _ in range(self.part.MOMENTS)]
        for table in tables:
            table.flags.writeable = False
        return tables

    def test_nothing_moves_nothing_from_rest(self) -> None:
        """A round that nobody answers, at the start."""
        moments = self.at_rest()
        for number in range(3):
            step, moments = self.part.step(np.zeros_like(AGGREGATE), moments, number)
            assert (step == 0.0).all()

    def test_it_keeps_as_many_tables_as_it_says_of_the_same_shape_and_type(self) -> None:
        """A checkpoint holds them, and 32-bit tables stay 32-bit."""
        for dtype in ("float64", "float32"):
            step, moments = self.part.step(AGGREGATE.astype(dtype), self.at_rest(dtype), 0)
            assert len(moments) == self.part.MOMENTS
            for table in (step, *moments):
                assert table.shape == AGGREGATE.shape
                assert table.dtype == dtype
                assert np.isfinite(table).all()

    def test_the_same_aggregate_gives_the_same_step(self) -> None:
        """State is passed, not kept."""
        first, second = (self.part.step(AGGREGATE, self.at_rest(), 2)[0] for _ in range(2))
        np.testing.assert_array_equal(first, second)


class PrivacyContract(Contract[Mechanism[Any]]):
    """It says what it hides, and what leaves a device is bounded."""

    kind = "privacy"

    def test_it_says_of_what_the_presence_is_hidden(self) -> None:
        """``None`` is no claim at all."""
        assert self.part.UNIT in (None, "user", "number")

    def test_protecting_keeps_the_items(self) -> None:
        """Which rows there are is the channel's choice."""
        if not self.part.protects:
            return
        _, message, devices = self.round()
        for device in devices[:5]:
            upload, _ = client_round(message, device, self.config("privacy.rule=none"))
            protected = self.part.protect(upload, device.secret, message)
            np.testing.assert_array_equal(protected.items, upload.items)
            assert np.isfinite(protected.delta).all()
