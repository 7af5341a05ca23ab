"""What every channel promises."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.parts import Channel
from fedrecplus.parts.channel import VIEWS, SummingChannel
from fedrecplus.protocol import Upload
from fedrecplus.rounds import client_round, sums_of
from fedrecplus.testing.contract import Contract


class ChannelContract(Contract[Channel[Any]]):
    """It says what the server sees, and hands on rows of the same items."""

    kind = "channel"

    def test_it_says_what_the_server_sees(self) -> None:
        """The audit records exactly that."""
        assert self.part.VIEW in VIEWS

    def test_protecting_keeps_the_items_and_is_repeatable(self) -> None:
        """Which rows there are is the choice of pseudo items; draws are keyed by the client's secret."""
        if not self.part.protects:
            return
        _, message, devices = self.round()
        for device in devices[:5]:
            upload, _ = client_round(message, device, self.config("channel.rule=clear"))
            first, again = (self.part.protect(upload, device.secret, message) for _ in range(2))
            assert type(first) is Upload
            assert first.client == upload.client
            np.testing.assert_array_equal(first.items, upload.items)
            assert first.delta.shape == upload.delta.shape
            assert np.isfinite(first.delta).all()
            np.testing.assert_array_equal(first.delta, again.delta)

    def test_an_exchange_leaves_every_client_its_upload(self) -> None:
        """Clients may talk to each other (``exchange``), and each of them still answers."""
        problem, message, devices = self.round()
        rounds = [client_round(message, device, problem.config) for device in devices]
        uploads = {upload.client: upload for upload, _ in rounds}
        after = {device.client: device for _, device in rounds}
        sent, bytes_told = self.part.exchange(after, uploads, message.round, problem.config.seed)
        assert set(sent) == set(uploads)
        assert bytes_told >= 0
        assert all(np.isfinite(upload.delta).all() for upload in sent.values())

    def test_adding_up_gives_the_plain_sums_within_its_rounding(self) -> None:
        """A channel that adds up by itself says how far rounding can move a row's sums (``rounding_error``).

        It may withhold rows of few contributors, whole and with their weights, and never all of them.
        """
        channel = self.part
        if not isinstance(channel, SummingChannel):
            return
        problem, message, devices = self.round()
        uploads = [client_round(message, device, problem.config)[0] for device in devices]
        sums, traffic = channel.add_up(uploads, message, problem.config.seed)
        plain = sums_of(uploads, message, problem.config)
        room = 1e-9 + channel.rounding_error(uploads, message)
        kept = (sums.weights != 0) | (plain.weights == 0)
        assert kept.mean() > 0.2
        assert not sums.total[~kept].any()
        assert (np.abs(sums.total - plain.total)[kept] <= room[kept, None]).all()
        if channel.values.get("weights", "sent") == "sent":
            np.testing.assert_allclose(sums.weights[kept], plain.weights[kept], rtol=1e-3)
        np.testing.assert_allclose(sums.overall, plain.overall, rtol=1e-3)
        assert sums.clients == plain.clients
        assert traffic.bytes_up > 0

    def test_adding_up_is_repeatable_and_blind_to_the_order_of_clients(self) -> None:
        """Same uploads, round and seed: same sums and same bytes, whoever comes first."""
        channel = self.part
        if not isinstance(channel, SummingChannel):
            return
        problem, message, devices = self.round()
        uploads = [client_round(message, device, problem.config)[0] for device in devices]
        sums, traffic = channel.add_up(uploads, message, problem.config.seed)
        again, same = channel.add_up(uploads[::-1], message, problem.config.seed)
        np.testing.assert_allclose(again.total, sums.total, rtol=0, atol=1e-9)
        np.testing.assert_allclose(again.weights, sums.weights, rtol=0, atol=1e-9)
        assert same == traffic
