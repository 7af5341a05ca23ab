"""What each watched client puts into the cohort's sums: for controls, and for attackers who know everybody else.

What an attacker is told about one client is always without that client's own ratings.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.audit.transcript import Transcript
from fedrecplus.audit.truth import AuditTruth
from fedrecplus.config import Config
from fedrecplus.parts.channel import RingSettings, expected_in, layout_of
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.protocol import Sums
from fedrecplus.randomness import subkey, uniform

_KNOWN = 20261117
"""key of the draws that say which ratings an attacker knows"""


@dataclass(frozen=True)
class Contribution:
    """One client's share of a round's sums."""

    items: Items
    total: Array
    """w Δ, a row per item"""
    weight: float
    statistic: Array


@dataclass
class Contributions:
    """By recorded round: what the watched clients would send, whether they are in the cohort or not."""

    sets: KnownSets
    """everybody's rated items"""
    truth: AuditTruth
    of_round: dict[int, dict[int, Contribution]] = field(default_factory=dict)
    recomputed: dict[int, Sums] = field(default_factory=dict)
    """the cohort's sums as whoever knows all ratings computes them: without noise and without rounding"""
    noiseless: dict[int, dict[int, Contribution]] = field(default_factory=dict)
    """of the clients in the cohort, what is in the recomputed sums"""

    def rest(self, client: int, round_number: int) -> Sums:
        """See ``transcript.Others``."""
        sums, own = self.recomputed[round_number], self.noiseless[round_number].get(client)
        return sums if own is None else exchanged(sums, own, None)

    def statistics(self, client: int) -> tuple[Array, Array]:
        """See ``transcript.Others``."""
        counts, sums = self.truth.popularity.astype(np.float64), self.truth.sums.copy()
        items, ratings = self.truth.of_client[client]
        counts[items] -= 1.0
        sums[items] -= ratings
        return counts, sums

    def some(self, client: int, count: int) -> tuple[Items, Array]:
        """See ``known_of``."""
        return known_of(self.truth, client, count)

    def replaced(self, transcript: Transcript, client: int, other: int) -> Transcript:
        """The transcript, with somebody else's contributions in the place of the client's own."""
        found = dict(transcript.sums)
        for t, sums in transcript.sums.items():
            if client in transcript.cohorts[t]:
                own, others = self.of_round[t][client], self.of_round[t][other]
                after = as_sent(sums, exchanged(sums, own, others), transcript.config)
                left_out = rows_left_out(transcript, len(transcript.cohorts[t]))
                after.total[left_out] = sums.total[left_out]
                found[t] = after
        return transcript.with_sums(found)


def known_of(truth: AuditTruth, client: int, count: int) -> tuple[Items, Array]:
    """So many of the client's ratings, drawn by lot, half of them at most; with 0, half of them."""
    items, ratings = truth.of_client[client]
    half = len(items) // 2
    draws = uniform(subkey(_KNOWN, "known ratings", client), items)
    chosen = np.sort(np.argsort(draws, kind="stable")[: min(count or half, half)])
    return items[chosen], ratings[chosen]


def rows_left_out(transcript: Transcript, cohort: int) -> NDArray[np.bool_]:
    """Rows that nobody sends, since too few of the cohort are expected to have rated them."""
    ring, public = transcript.config.channel.settings, transcript.public
    if isinstance(ring, RingSettings) and ring.rows == "whole":
        return np.asarray(expected_in(cohort, public) < ring.fewest_contributors)
    return np.zeros(len(public.popularity), dtype=bool)


def as_sent(before: Sums, after: Sums, config: Config) -> Sums:
    """Exchanged sums with the weights that such a cohort would show: public figures stay what they are.

    Under a budget all weights are public. A ring that sends no weights of rows has Σw over all times public shares.
    """
    if isinstance(config.privacy, BudgetMechanism):
        return replace(after, weights=before.weights, overall=before.overall, clients=before.clients)
    ring = config.channel.settings
    if isinstance(ring, RingSettings) and not layout_of(before.total.shape, before.statistic.size, ring).weights:
        return replace(after, weights=before.weights * (after.overall / before.overall))
    return after


def exchanged(sums: Sums, out: Contribution | None, into: Contribution | None) -> Sums:
    """Sums less one contribution, and with another. ``clients`` counts who is left."""
    total, weights, statistic = sums.total.copy(), sums.weights.copy(), sums.statistic.copy()
    overall, clients = sums.overall, sums.clients
    for sign, one in ((-1, out), (1, into)):
        if one is not None:
            total[one.items] += sign * one.total
            weights[one.items] += sign * one.weight
            if statistic.size:
                statistic += sign * one.statistic
            overall, clients = overall + sign * one.weight, clients + sign
    return replace(sums, total=total, weights=weights, overall=overall, clients=clients, statistic=statistic)
