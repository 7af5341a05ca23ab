"""FedRec++: ordinary clients tell a denoising client of their pseudo rows, and it takes them out again.

After: Liang, Pan, Ming 2021 (FedRec++)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import Channel
from fedrecplus.protocol import PeerMessage, Upload
from fedrecplus.randomness import Key, subkey, uniform
from fedrecplus.settings import Settings as _Settings

Clients = NDArray[np.int64]


class Settings(_Settings):
    """Options of the channel."""

    share: ClassVar[float] = 0.25
    """share of the cohort that collects the others' pseudo rows"""


class Denoising(Channel[Settings]):
    """FedRec++."""

    SIMULATION_ONLY = True

    def check_with(self, config: Any) -> None:
        """Refuse weights, and more than rows of rated items: a denoising client's upload is a sum over several."""
        aggregation, model = config.aggregation, config.model
        if model.statistic_size or config.model.ALL_ITEMS:
            raise UserError(
                f"channel.rule=denoising takes out pseudo rows alone, and model.rule={model.rule} uploads more than "
                "rows of rated and pseudo items",
                "set model.rule=mf, as FedRec++ has it, or channel.rule=sums",
            )
        if aggregation.rule != "uniform" or config.aggregation.weighs_on_client:
            raise UserError(
                "channel.rule=denoising needs uniform weights, given by the server, not "
                f"aggregation.rule={aggregation.rule}",
                "set aggregation.rule=uniform and aggregation.weigh_on=server, or channel.rule=clear",
            )

    def exchange(
        self, devices: Mapping[int, Device], uploads: Mapping[int, Upload], round_number: int, seed: int
    ) -> tuple[dict[int, Upload], int]:
        """What clients send after they have talked to each other, and the bytes that went between them."""
        clients = np.array(sorted(uploads), dtype=np.int64)
        chosen = denoisers(clients, round_number, seed, self.settings)
        inbox: dict[int, list[PeerMessage]] = {int(client): [] for client in chosen}
        for client in clients.tolist():
            if client not in inbox:
                to = denoiser_of(devices[client].secret, chosen, round_number)
                inbox[to].append(noise_of(uploads[client], devices[client]))
        sent = dict(uploads)
        for client, messages in inbox.items():
            sent[client] = denoise(uploads[client], devices[client], messages)
        return sent, sum(message.bytes for messages in inbox.values() for message in messages)


def denoisers(clients: Clients, round_number: int, seed: int, settings: Settings) -> Clients:
    """The clients that denoise in a round, ascending. The server draws them."""
    if len(clients) == 0:
        return clients
    draws = uniform(subkey(seed, "denoisers", round_number), clients)
    return np.sort(clients[np.argsort(draws, kind="stable")[: max(1, round(settings.share * len(clients)))]])


def denoiser_of(secret: Key, chosen: Clients, round_number: int) -> int:
    """The denoising client that an ordinary client picks, by its own secret."""
    draw = uniform(subkey(secret, "denoiser"), np.array([round_number]))[0]
    return int(chosen[int(draw * len(chosen))])


def noise_of(upload: Upload, device: Device) -> PeerMessage:
    """The pseudo rows of an upload, for the denoising client."""
    pseudo = ~np.isin(upload.items, device.items)
    return PeerMessage(upload.items[pseudo], upload.delta[pseudo])


def denoise(upload: Upload, device: Device, messages: list[PeerMessage]) -> Upload:
    """A denoising client's upload: its own rated rows less the noise that others told it of, with counts."""
    rated = np.isin(upload.items, device.items)
    items = np.concatenate([upload.items[rated], *(message.items for message in messages)])
    delta = np.concatenate([upload.delta[rated], *(-message.delta for message in messages)])
    signs = np.concatenate([np.ones(rated.sum(), np.int64), *(-np.ones(len(m.items), np.int64) for m in messages)])
    unique, place = np.unique(items, return_inverse=True)
    summed = np.zeros((len(unique), delta.shape[1]))
    counts = np.zeros(len(unique), dtype=np.int64)
    np.add.at(summed, place, delta)
    np.add.at(counts, place, signs)
    return Upload(upload.client, unique, summed, counts=counts)
