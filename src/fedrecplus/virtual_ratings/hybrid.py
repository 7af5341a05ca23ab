"""User averages in the first rounds, then predictions from a U trained a little longer on the real ratings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.gradients import kept_steady, step_sizes, user_step
from fedrecplus.model import prior
from fedrecplus.protocol import Broadcast
from fedrecplus.virtual_ratings import predicted, user_average


def fill(items: NDArray[np.int64], device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    """User average while t ≤ T_predict, then U'·V, U' being U after T_local more steps with V fixed.

    After: Lin, Pan, Ming 2020 (FedRec), hybrid filling
    """
    if broadcast.round < settings.virtual_ratings.predict_after:
        return user_average.fill(items, device, broadcast, settings)
    U = device.U
    U_prior, _ = prior(settings.model, broadcast.mean)
    V = broadcast.V[device.items]
    sizes = kept_steady(step_sizes(settings, broadcast.round), V)
    for _ in range(settings.virtual_ratings.local_steps):
        U = user_step(U, V, device.ratings - broadcast.mean, U_prior, sizes)
    return predicted.fill(items, replace(device, U=U), broadcast, settings)
