"""What every rule of pseudo items promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING
from fedrecplus.device import Device
from fedrecplus.parts import PseudoItems
from fedrecplus.parts.pseudo_items import Count
from fedrecplus.rounds import pseudo_items
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
