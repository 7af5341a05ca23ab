"""An attacker who knows some of a person's ratings: they imply a vector, and the rows of a sum lean towards it or not.

Friends, a shop, a public profile: few ratings of one person are easily had. The device's own equations turn them into
its vector u, up to what is missing. A row that the person rated has c(1 − s)u in its sum among n others', which shows
where n is small. Beside it, u·W_i says what such a person would rate anyway: the control has that, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.attacks._presence import leaning, moving, raters_of, unexplained
from fedrecplus.parts.model.ials import Ials
from fedrecplus.settings import Annotated, Settings as _Settings, number

_TASTE = 8.0
"""log odds per unit of the score u·W_i: near the slope on ML-100K"""
_RIDGE = 1e-3


class Settings(_Settings):
    """Options of the attack."""

    ratings: Annotated[int, number(0, 10**6, "of a person that are known, half of them at most; 0: half of them")] = 20


class KnowsSome(Attack[Settings]):
    """The attack."""

    SEES = ("sums",)
    KNOWING = "some ratings"
    LOG_ODDS = True

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of all items but the known ones: the log likelihood ratio of sums with and without the person, and taste."""
        model, some = transcript.config.model, transcript.knowledge.some
        if some is None or not isinstance(model, Ials):
            return ()
        columns, score = model.choosing().columns, np.zeros(len(transcript.public.popularity))
        every = transcript.rounds_of(columns)
        rounds = [t for t in every if client in transcript.cohorts[t]]
        if not rounds:
            return ()
        known, ratings = some(client, self.settings.ratings)
        parts = np.zeros((len(score), model.settings.interaction_factors))
        for t in rounds:
            W = transcript.broadcast(t).V[:, columns]
            u, _ = model.person_factors(model.shared_equations(W, transcript.public), known, ratings, transcript.public)
            rows = rows_of(transcript, t, columns)
            score += (rows.log_ratio(W, u) + _TASTE * W @ u) / len(rounds)
            parts += rows.weight * np.outer(1.0 - W @ u, u) / len(rounds)
        if len(rounds) < len(every):
            notes = transcript.once(("moving", columns.start), lambda: moving(transcript, columns))
            score += notes.log_ratio(client, parts)
        items = np.setdiff1d(np.arange(len(score)), known)
        return (Guess(rounds[-1], items, silent(items), score[items], told=known),)


@dataclass(frozen=True)
class RowSums:
    """Rows of a sum less what is expected of them, over √n, and how they spread."""

    rest: Array
    spread: Array
    """covariance of ``rest``"""
    raters: Array
    weight: float
    """a mean client's"""
    summed: NDArray[np.bool_]

    def log_ratio(self, W: Array, u: Array) -> Array:
        """Of the row's being one with w(1 − u·W_i)u in it; 0 where no row is summed."""
        parts = self.weight * np.outer(1.0 - W @ u, u)
        return np.where(self.summed, leaning(self.rest, self.spread, parts, self.raters), 0.0)


def rows_of(transcript: Transcript, round_number: int, columns: slice) -> RowSums:
    """Of one round, computed once."""

    def compute() -> RowSums:
        sums, (rest, summed) = transcript.sums[round_number], unexplained(transcript, round_number, columns)
        spread = rest.T @ rest / max(int(summed.sum()), 1)
        spread += (_RIDGE * np.trace(spread) / len(spread) + 1e-300) * np.eye(len(spread))
        return RowSums(rest, spread, raters_of(transcript), sums.overall / max(sums.clients, 1), summed)

    return transcript.once(("leaning rows", round_number, columns.start), compute)
