"""What every channel promises."""

from __future__ import annotations

import numpy as np

from fedrecplus.parts import VIEWS
from fedrecplus.protocol import Upload
from fedrecplus.rounds import client_round
from fedrecplus.testing.contract import Contract


class ChannelContract(Contract):
    """It says what the server sees, and hands on rows of the same items."""

    kind = "channel"

    def test_it_says_what_the_server_sees(self) -> None:
        """The audit records exactly that."""
        assert self.part.VIEW in VIEWS

    def test_protecting_keeps_the_items_and_is_repeatable(self) -> None:
        """Which rows there are is the choice of pseudo items; draws are keyed by the client's secret."""
        if not self.part.has("protect"):
            return
        _, message, devices = self.round()
        for device in devices[:5]:
            upload, _ = client_round(message, device, self.config("channel.rule=clear"))
            first, again = (self.part.protect(upload, device.secret, message, self.options) for _ in range(2))
            assert type(first) is Upload
            assert first.client == upload.client
            np.testing.assert_array_equal(first.items, upload.items)
            assert first.delta.shape == upload.delta.shape
            assert np.isfinite(first.delta).all()
            np.testing.assert_array_equal(first.delta, again.delta)

    def test_an_exchange_leaves_every_client_its_upload(self) -> None:
        """Clients may talk to each other (``exchange``), and each of them still answers."""
        if not self.part.has("exchange"):
            return
        problem, message, devices = self.round()
        rounds = [client_round(message, device, problem.config) for device in devices]
        uploads = {upload.client: upload for upload, _ in rounds}
        after = {device.client: device for _, device in rounds}
        sent, told = self.part.exchange(after, uploads, message.round, problem.config.seed, self.options)
        assert set(sent) == set(uploads)
        assert told >= 0
        assert all(np.isfinite(upload.delta).all() for upload in sent.values())
