"""What every mechanism of differential privacy promises."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.parts import Mechanism
from fedrecplus.rounds import client_round
from fedrecplus.testing.contract import Contract


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
