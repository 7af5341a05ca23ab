"""What releases cost: facts about releases here, and Google's dp-accounting as the judge of them.

A release is a sum over clients with Gaussian noise. Its noise multiplier is the noise's standard deviation over the
most that one client can contribute, in L2 norm. A plan is all releases of a training. ``calibrated`` finds the least
noise for a budget, ``epsilon_of`` says what some releases have spent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedrecplus.errors import UserError

NEIGHBOURING = "add-or-remove-one"
ZERO_OUT = "zero-out-one"
"""one person's numbers are replaced by zeros, and who takes part is known; sensitivities are those of add or remove"""
_STEP = 1e-3
"""discretisation of privacy losses, always upwards: of one Gaussian it adds a millionth to ε"""
_CLOSE = 1e-3
"""a calibrated multiplier is at most by this share greater than it had to be; ten times that with sampling"""
_EXACT = 1e-10
"""the same for noise of devices, each of which calibrates it by itself: all must scale their sums alike"""


@dataclass(frozen=True)
class Release:
    """Releases of one kind: so many sums over a random share of all clients, with the same noise."""

    noise_multiplier: float
    sampling: float = 1.0
    """probability by which each client takes part, independently of the others (Poisson sampling)"""
    count: int = 1


@dataclass(frozen=True)
class ReleasePlan:
    """All that a training releases."""

    statistics: float | None
    """noise multiplier of the statistics' sums; None where none are taken of the participants"""
    rounds: tuple[float, ...]
    """noise multiplier of each round's sums"""
    sampling: float
    """probability by which a client takes part in a round, as far as amplification is claimed; else 1"""
    accountant: str = "PLD"
    """of dp-accounting: PLD, exact up to discretisation, or RDP, for noise with a bound on Rényi divergences alone"""

    def releases(self, rounds: int | None = None) -> list[Release]:
        """The statistics, and those of the first rounds."""
        done = self.rounds if rounds is None else self.rounds[:rounds]
        kinds = [Release(z, self.sampling, done.count(z)) for z in dict.fromkeys(done)]
        return kinds if self.statistics is None else [Release(self.statistics), *kinds]


def epsilon_of(releases: Iterable[Release], delta: float, accountant: str = "PLD") -> float:
    """What the releases have spent, together."""
    releases = tuple(releases)
    return _epsilon(releases, delta, accountant) if releases else 0.0


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The ε at which a single Gaussian release of noise multiplier 1/μ has this δ. After: Balle and Wang 2018"""
    return float(_dp_accounting().get_epsilon_gaussian(1.0 / mu, delta)) if mu > 0.0 else 0.0


@functools.lru_cache(maxsize=64)
def planned(
    epsilon: float,
    delta: float,
    statistics_share: float,
    round_shares: tuple[float, ...],
    sampling: float,
    accountant: str = "PLD",
) -> ReleasePlan:
    """The least noise that keeps a whole training within a budget.

    Shares divide Σ 1/z², which is what Gaussian releases without sampling spend: z² = z₀²/share.
    """

    def plan(z: float) -> ReleasePlan:
        rounds = tuple(z / math.sqrt(share * (1.0 - statistics_share)) for share in round_shares)
        return ReleasePlan(
            z / math.sqrt(statistics_share) if statistics_share > 0.0 else None, rounds, sampling, accountant
        )

    def spends(z: float) -> float:
        return epsilon_of(plan(z).releases(), delta, accountant)

    high = _dp_accounting().get_sigma_gaussian(epsilon, delta)  # enough without sampling, but for discretisation
    while spends(high) > epsilon:
        high *= 1.0 + _CLOSE
    low = high / 2.0 if sampling < 1.0 else high / (1.0 + _CLOSE)
    while spends(low) <= epsilon:
        low, high = low / 2.0, low
    close = _EXACT if accountant == "RDP" else _CLOSE
    while high / low > 1.0 + (close if sampling >= 1.0 else 10.0 * _CLOSE):  # sampled releases take long to judge
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spends(middle) <= epsilon else (middle, high)
    return plan(high)


@functools.lru_cache(maxsize=256)
def _epsilon(releases: tuple[Release, ...], delta: float, accountant: str) -> float:
    judge, whole = _dp_accounting(), [release for release in releases if release.sampling >= 1.0]
    sampled = [release for release in releases if release.sampling < 1.0]
    neighbours = judge.NeighboringRelation.ADD_OR_REMOVE_ONE
    if accountant == "RDP":
        account = judge.rdp.RdpAccountant(neighboring_relation=neighbours)
    else:
        account = judge.pld.PLDAccountant(neighbours, value_discretization_interval=_STEP)
    if whole:  # Gaussians compose to a Gaussian, exactly: Dong, Roth and Su 2022, Corollary 3.3
        spent = sum(release.count / release.noise_multiplier**2 for release in whole)
        account.compose(judge.GaussianDpEvent(1.0 / math.sqrt(spent)))
    for release in sampled:
        event = judge.PoissonSampledDpEvent(release.sampling, judge.GaussianDpEvent(release.noise_multiplier))
        account.compose(event, release.count)
    return float(account.get_epsilon(delta))


def _dp_accounting() -> Any:
    """The judge; it takes seconds to import, so only those who need it do."""
    try:
        import dp_accounting
        import dp_accounting.pld
        import dp_accounting.rdp
    except ImportError:
        raise UserError(
            "differential privacy needs dp-accounting, which is not installed", "pip install 'fedrecplus[privacy]'"
        ) from None
    return dp_accounting
