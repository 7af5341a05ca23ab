"""Every device adds its share of discrete Gaussian noise in the ring, under secure sums: no server is trusted.

The shares of the fewest honest devices that may be left (``honest``, of those asked) are enough noise for the budget;
with more of them there is more noise than is claimed. The server sees who takes part: what is claimed is that a
person's numbers could as well be zeros. A device sends no weights: the server divides by the counts of
the statistics. In simulation the shares are drawn at the aggregate: integers add up to the same in any order.

After: Kairouz, Liu and Steinke 2021 (the distributed discrete Gaussian mechanism)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import BudgetMechanism, Calibration, _budget
from fedrecplus.parts.privacy._accounting import ReleasePlan
from fedrecplus.parts.privacy._noise import Words, discrete_gaussian, seeded_words
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import Key
from fedrecplus.settings import Annotated, number, text

ACCOUNTANT = "RDP"
"""a sum of discrete Gaussians has a bound on its Rényi divergences, and no exact privacy loss"""
_STEPS = 2.0**16
"""of the simulated ring in a clip"""
_ROUNDED = 1.001
"""of a norm: what rounding to a ring of 32 bits may lift it to"""
_LEAST_SHARE = 4.0
"""steps that a device's share has as its standard deviation at least: then the sum of shares is a discrete Gaussian to
within e^(−π²·16), and the τ of the bound is nothing"""


class Settings(_budget.BudgetSettings):
    """Options of the mechanism."""

    honest: Annotated[
        float, number(0.01, 1, "share of the asked devices that adds noise and answers, at least; else the round fails")
    ] = 0.7
    devices: Annotated[
        int, number(0, 10**6, "deployed: n, whose honest share adds enough noise; 1: each by itself; 0: all asked")
    ] = 0
    draw: Annotated[
        Literal["sum", "shares"],
        text("simulation: draw the sum's noise once, from its distribution, or every device's share"),
    ] = "sum"


class Distributed(BudgetMechanism[Settings]):
    """Discrete Gaussian noise, a share from each device."""

    MECHANISM = "discrete Gaussian noise, a share from each device, under secure sums"
    NOISE_ON_DEVICES = True

    def check_with(self, config: Any) -> None:
        """Refuse claims that would mean nothing."""
        super().check_with(config)
        if config.channel.VIEW != "sums":
            raise UserError(
                f"privacy.rule=distributed with channel.rule={config.channel.rule}: one device's share of the noise "
                "hides nothing where its upload is seen alone",
                "set channel.rule=secure (or sums, in simulation)",
            )
        if self.settings.honest > config.answering:
            raise UserError(
                f"privacy.honest={self.settings.honest:g} where cohort.dropout and channel.dropout leave a share "
                f"of {config.answering:.2g}: fewer devices answer than the noise is calibrated to",
                f"set privacy.honest to {0.9 * config.answering:.2g} or less",
            )

    def plan(self, rounds: int, sampling: float, statistics: bool) -> ReleasePlan:
        """The noise of every release. Nothing is gained by sampling: the server knows who takes part."""
        return _budget.plan(self.settings, rounds, 1.0, statistics, ACCOUNTANT)

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        """On the device: weigh and clip; the weight stays at home. The share of noise is added in the ring."""
        return replace(_budget.bounded(upload, self.settings), weight=0.0)

    def noisy(self, vector: Array, release: Calibration, words: Words | None = None) -> tuple[Array, float]:
        """The simulated ring sum, and its noise's standard deviation: the shares of all devices that answered."""
        asked, answered, sensitivity = release.asked, release.answered, release.sensitivity
        if answered < np.floor(self.settings.honest * asked):
            raise UserError(
                f"{answered} of {asked} devices answered, and the noise is calibrated to a share of "
                f"{self.settings.honest:g}",
                "set privacy.honest lower: each device then adds more",
            )
        steps = _STEPS / sensitivity
        scale = share_scale(release.multiplier, sensitivity + 0.5 * np.sqrt(vector.size) / steps, asked, self.settings)
        words = seeded_words(release.key) if words is None else words
        if self.settings.draw == "shares":
            noise = sum(ring_noise(vector.shape, scale, steps, words) for _ in range(answered))
        else:
            noise = discrete_gaussian(np.full(vector.shape, scale * steps * np.sqrt(answered)), words)
        return (np.rint(vector * steps) + noise) / steps, float(scale * np.sqrt(answered))


def share_scale(multiplier: float, sensitivity: float, asked: int, settings: Settings) -> float:
    """Standard deviation of one device's share: enough where ``honest`` of those asked add theirs."""
    return multiplier * sensitivity / float(np.sqrt(max(1.0, np.floor(settings.honest * asked))))


def ring_sensitivity(
    clip: float, scales: Array, columns: int, rounding: float = 0.5, statistic: tuple[int, float] = (0, 1.0)
) -> float:
    """The norm of one device's vector in the ring: each number moves by half a step, or by one if rounded by chance.

    ``statistic`` is how many numbers there are beside the rows, and their steps per unit.
    """
    used, (size, steps) = scales[scales > 0.0], statistic
    return clip + rounding * float(np.sqrt(columns * np.sum(used**-2.0) + size * steps**-2.0))


def headroom(multiplier: float, sensitivity: float, bound: float, asked: int, settings: Settings) -> int:
    """As how many contributions at the bound a ring must count the noise, so that a sum doesn't wrap around.

    All asked devices may answer, and eight standard deviations are exceeded by one number in 10¹⁵.
    """
    most = np.sqrt(asked) * share_scale(multiplier, sensitivity, settings.devices or asked, settings)
    return int(np.ceil(8.0 * most / bound))


def ring_noise(
    size: tuple[int, ...], scale: float, steps: Array | float, words: Words | None = None
) -> NDArray[np.int64]:
    """A device's share of noise as ring integers: standard deviation ``scale``, with so many steps per unit.

    ``steps`` are those of the ring's encoding, one per row or one for all; ``words`` come from the operating system
    unless a simulation gives its own. Add it to the encoded vector, modulo the ring, before any mask.
    """
    sigma = scale * np.broadcast_to(np.asarray(steps, dtype=np.float64), size)
    if np.any((sigma > 0.0) & (sigma < _LEAST_SHARE)):
        raise UserError(
            f"a device's share of noise has {sigma[sigma > 0.0].min():.2g} steps of the ring as its standard deviation",
            f"{_LEAST_SHARE:g} are needed: set channel.bits=32, or fewer devices in a round",
        )
    return discrete_gaussian(sigma, words)


@dataclass(frozen=True)
class DeviceNoise:
    """The noise of one sum that devices add up in a ring, and the room that it needs there."""

    multiplier: float
    norm: float
    """of one person's vector before it is rounded, at most"""
    settings: Settings

    def room(self, bound: float, asked: int) -> int:
        """As how many contributions at the bound the ring must count it."""
        return headroom(self.multiplier, _ROUNDED * self.norm, bound, asked, self.settings)

    def share(self, scales: Array, columns: int, statistic: tuple[int, float], asked: int) -> float:
        """Standard deviation of each device's share, for a ring with these steps per unit of each row."""
        sensitivity = ring_sensitivity(self.norm, scales, columns, statistic=statistic)
        if sensitivity > _ROUNDED * self.norm:
            raise UserError(
                f"rounding to the ring's steps adds {sensitivity / self.norm - 1.0:.2g} to a person's norm",
                f"{_ROUNDED - 1.0:.2g} is allowed for: set a smaller channel.bound, or fewer devices in a round",
            )
        return share_scale(self.multiplier, sensitivity, self.settings.devices or asked, self.settings)
