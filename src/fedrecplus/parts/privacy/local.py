"""Noise on every upload by itself, as FedGNN and Dolui et al. have it: a baseline, with a claim per number alone.

``laplace``: each number of an upload is clipped to ±clip and gets Laplace noise of scale 2·clip/ε. FedGNN calls the ε
of one number the budget. Numbers of one person add up: over all rows and rounds the person's own ε is thousands of
times that, and results say how much. Which items were rated is hidden by pseudo items, if at all, and by no noise.
``gaussian``: the whole update is clipped in L2 norm and gets Gaussian noise for (ε, δ) of one upload.

After: Wu et al. 2021 (FedGNN); Dolui et al. 2019
Deviation: Dolui et al. publish no noise scale; the classical one of Dwork and Roth 2014, Theorem A.1, in its exact form
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import Mechanism
from fedrecplus.parts.privacy._accounting import planned
from fedrecplus.parts.privacy._noise import seeded_gaussian
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import Key, subkey, uniform
from fedrecplus.settings import Annotated, Settings as _Settings, number, text


class Settings(_Settings):
    """Options of the mechanism."""

    epsilon: Annotated[float, number(1e-3, 1e6, "ε of a number (laplace) or an upload (gaussian), not of a run")] = 10.0
    delta: Annotated[float, number(1e-15, 0.1, "δ of one upload, for gaussian")] = 1e-5
    clip: Annotated[float, number(0, 1e6, "bound of each number (laplace) or of the update's norm (gaussian)")] = 0.1
    noise: Annotated[Literal["laplace", "gaussian"], text("FedGNN's, or Dolui's")] = "laplace"


class Local(Mechanism[Settings]):
    """Noise on every upload."""

    UNIT = "number"
    MECHANISM = "noise on every upload (local)"

    def check_with(self, config: Any) -> None:
        """Refuse noise without a bound."""
        if self.settings.clip <= 0.0:
            raise UserError(
                "privacy.rule=local without clipping: a number without a bound is covered by no noise",
                "set privacy.clip",
            )
        if not config.seeded_noise:
            raise UserError(
                "privacy.rule=local draws its noise from the simulated clients' secrets, which follow from the seed: "
                "it hides nothing from whoever knows that",
                "say that this is research: --seeded-noise, or seeded_noise=true; such a run can't be published",
            )

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        """On the device: clip, and add noise to every number that is sent."""
        key = subkey(secret, "local-noise", broadcast.round)
        numbers = np.concatenate([upload.delta.ravel(), upload.statistic])
        noised = with_noise(numbers, self.settings, key)
        rows = upload.delta.size
        return replace(upload, delta=noised[:rows].reshape(upload.delta.shape), statistic=noised[rows:])

    def claim(self, numbers: int, rounds: int) -> dict[str, Any]:
        """What is claimed, and what it comes to for a person whose upload has so many numbers, by basic composition."""
        uploads = numbers if self.settings.noise == "laplace" else 1
        return {
            "epsilon": self.settings.epsilon,
            "delta": 0.0 if self.settings.noise == "laplace" else self.settings.delta,
            "unit": self.UNIT if self.settings.noise == "laplace" else "upload",
            "neighbouring": "replace-one",
            "mechanism": f"{self.settings.noise} {self.MECHANISM}",
            "accountant": "basic composition",
            "epsilon_of_largest_user": self.settings.epsilon * uploads * rounds,
            "seeded_noise": True,
        }


def with_noise(numbers: Array, settings: Settings, key: Key) -> Array:
    """Clipped numbers with noise of a key."""
    if settings.noise == "laplace":
        centred = uniform(subkey(key, "laplace"), np.arange(len(numbers))) - 0.5
        laplace = -np.sign(centred) * np.log1p(-2.0 * np.abs(centred))
        return np.asarray(np.clip(numbers, -settings.clip, settings.clip) + laplace_scale(settings) * laplace)
    norm = float(np.linalg.norm(numbers))
    clipped = numbers * min(1.0, settings.clip / norm) if norm > 0.0 else numbers
    multiplier = planned(settings.epsilon, settings.delta, 1.0, (), 1.0).statistics or 0.0
    # two uploads of the same rows differ by 2·clip at most
    return np.asarray(clipped + 2.0 * settings.clip * multiplier * seeded_gaussian(key, numbers.shape))


def laplace_scale(settings: Settings) -> float:
    """λ = 2·clip/ε. After: Wu et al. 2021 (FedGNN), ε = 2δ/λ with their δ the bound"""
    return 2.0 * settings.clip / settings.epsilon
