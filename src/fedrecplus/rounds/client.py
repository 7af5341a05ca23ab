"""What a client does in a round: Algorithm 1, lines 3–8."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device, PseudoItems
from fedrecplus.gradients import item_step, kept_steady, step_sizes, user_step
from fedrecplus.model import prior
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast, PeerMessage, Upload
from fedrecplus.randomness import keys, subkey
from fedrecplus.rounds.filling import pseudo_items

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rated and pseudo items together, ascending."""

    items: NDArray[np.int64]
    ratings: Array
    rated: NDArray[np.bool_]


def client_round(broadcast: Broadcast, device: Device, settings: Config) -> tuple[Upload, Device]:
    """Choose pseudo items, train locally, and upload how V's rows moved. Paper: Algorithm 1, lines 3–8"""
    pseudo = pseudo_items(broadcast, device, settings)
    rows = merge(device, pseudo)
    U, V = local_training(device.U, broadcast.V[rows.items], rows, broadcast, device, settings)
    upload = weigh(Upload(device.client, rows.items, V - broadcast.V[rows.items]), broadcast, settings)
    return upload, replace(device, U=U, kept=None if settings.pseudo_items.redraw else pseudo)


def merge(device: Device, pseudo: PseudoItems) -> Rows:
    """Sorted by item, so that the order of an upload tells nothing."""
    items = np.concatenate([device.items, pseudo.items])
    order = np.argsort(items, kind="stable")
    ratings = np.concatenate([device.ratings, pseudo.ratings])
    return Rows(items[order], ratings[order], (np.arange(len(items)) < len(device.items))[order])


def local_training(
    U: Array, V: Array, rows: Rows, broadcast: Broadcast, device: Device, settings: Config
) -> tuple[Array, Array]:
    """K epochs of a U step and a step on the client's copy of its rows of V. Paper: Algorithm 1, lines 4–7"""
    V = V.copy()
    targets = rows.ratings - broadcast.mean
    U_prior, V_prior = prior(settings.model, broadcast.mean)
    used = rows.rated | (settings.client.u_step == "all")
    sizes = kept_steady(step_sizes(settings, broadcast.round), V[used])
    for _ in range(settings.client.local_epochs):
        for batch in batches(rows, broadcast, device, settings):
            users = batch[used[batch]]
            if len(users):
                U = user_step(U, V[users], targets[users], U_prior, sizes)
            V[batch] = item_step(U, V[batch], targets[batch], V_prior, sizes)
    return U, V


def batches(rows: Rows, broadcast: Broadcast, device: Device, settings: Config) -> list[NDArray[np.int64]]:
    """Row numbers, all at once or in batches of B in an order that is new each round."""
    size = settings.client.batch_size
    if size == 0:
        return [np.arange(len(rows.items))]
    order = np.argsort(keys(subkey(device.secret, "batches", broadcast.round), rows.items), kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


def weigh(upload: Upload, broadcast: Broadcast, settings: Config) -> Upload:
    """Where clients weigh themselves: w·Δ and w instead of Δ.

    Ours: the server then needs only sums, which secure aggregation can give it without any client's Δ.
    """
    if settings.aggregation.weigh_on == "server":
        return upload
    rule = part("aggregation", settings.aggregation.rule)
    weight = rule.weight(upload.items, upload.delta, broadcast.last_step, broadcast.last_spread, settings)
    return replace(upload, delta=weight * upload.delta, weight=weight)


def noise_of(upload: Upload, device: Device) -> PeerMessage:
    """The pseudo rows of an upload, for the denoising client. After: Liang, Pan, Ming 2021 (FedRec++)."""
    pseudo = ~np.isin(upload.items, device.items)
    return PeerMessage(upload.items[pseudo], upload.delta[pseudo])


def denoise(upload: Upload, device: Device, messages: list[PeerMessage]) -> Upload:
    """A denoising client's upload: its own rated rows less the noise that others told it of, with counts.

    After: Liang, Pan, Ming 2021 (FedRec++).
    """
    own = np.isin(upload.items, device.items)
    items = np.concatenate([upload.items[own], *(message.items for message in messages)])
    delta = np.concatenate([upload.delta[own], *(-message.delta for message in messages)])
    signs = np.concatenate([np.ones(own.sum(), np.int64), *(-np.ones(len(m.items), np.int64) for m in messages)])
    unique, place = np.unique(items, return_inverse=True)
    summed = np.zeros((len(unique), delta.shape[1]))
    counts = np.zeros(len(unique), dtype=np.int64)
    np.add.at(summed, place, delta)
    np.add.at(counts, place, signs)
    return Upload(upload.client, unique, summed, counts=counts)
