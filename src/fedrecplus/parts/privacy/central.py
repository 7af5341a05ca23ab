"""Noise at the aggregate: devices clip, and whoever adds up adds Gaussian noise before anybody looks.

The claim is about what is released (V, statistics), and holds against everybody but the one who adds up and adds the
noise. Amplification by sampling is claimed only where each client takes part by its own coin (Poisson sampling), and
only against those who don't learn who took part.

After: McMahan et al. 2018 (DP-FedAvg)
"""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.privacy import BudgetMechanism, Calibration, _budget
from fedrecplus.parts.privacy._accounting import ReleasePlan
from fedrecplus.parts.privacy._noise import Words, discrete_gaussian, seeded_gaussian
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import Key
from fedrecplus.settings import Annotated, text

_STEPS = 2.0**20
"""of the grid in the sensitivity"""


class Settings(_budget.BudgetSettings):
    """Options of the mechanism."""

    amplification: Annotated[
        bool, text("rely on nobody knowing who took part in a round; needs cohort.sampling=poisson")
    ] = False


class Central(BudgetMechanism[Settings]):
    """Gaussian noise, by whoever adds up."""

    MECHANISM = "Gaussian noise at the aggregate"

    def plan(self, rounds: int, sampling: float, statistics: bool) -> ReleasePlan:
        """The noise of every release; sampled ones of many sizes are judged by their Rényi divergences."""
        if self.settings.amplification:
            return _budget.plan(self.settings, rounds, sampling, statistics, "RDP")
        return _budget.plan(self.settings, rounds, 1.0, statistics)

    @property
    def amplifies(self) -> bool:
        """As the settings say."""
        return self.settings.amplification

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        """On the device: weigh and clip. No noise yet."""
        return _budget.bounded(upload, self.settings)

    def noisy(self, vector: Array, release: Calibration, words: Words | None = None) -> tuple[Array, float]:
        """The sum with noise, and the noise's standard deviation.

        Noise and sum are integers on a fine grid, rounding to which adds a step per number to the sensitivity. Without
        ``words`` the noise is drawn from a key, in floating point: ``seeded_noise``.
        """
        if words is None:
            sd = release.multiplier * release.sensitivity
            return vector + sd * seeded_gaussian(release.key, vector.shape), sd
        steps = _STEPS / release.sensitivity
        sd = release.multiplier * (release.sensitivity + np.sqrt(vector.size) / steps)
        drawn = discrete_gaussian(np.full(vector.shape, sd * steps), words)
        return (np.rint(vector * steps) + drawn) / steps, float(sd)
