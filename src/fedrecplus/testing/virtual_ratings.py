"""What every rule of virtual ratings promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import Scale
from fedrecplus.device import Device
from fedrecplus.parts import VirtualRatings
from fedrecplus.parts.virtual_ratings import put_on_scale
from fedrecplus.rounds import predictions
from fedrecplus.testing.contract import Contract
from fedrecplus.testing.example import batch_of

SCALES = (Scale(1.0, 5.0, 1.0), Scale(0.5, 5.0, 0.5), Scale(0.0, 100.0, 1.0), Scale(0.0, 1.0, 1.0))


class VirtualRatingsContract(Contract[VirtualRatings[Any]]):
    """One finite rating per item, on the scale where that is asked for, by item, client and broadcast alone."""

    kind = "virtual_ratings"

    def fill(
        self, items: NDArray[np.int64], device: Device, *more: str, scale: Scale | None = None
    ) -> NDArray[np.float64]:
        """Virtual ratings before they are put on the scale."""
        problem, message, _ = self.round(*more, scale=scale)
        predict = predictions(device, message, problem.config)
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
