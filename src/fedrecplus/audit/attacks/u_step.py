"""Which rows the user's weights were fitted to: a step of U, and an exact solution, are linear in membership."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._reading import Reading, of_model, readings, stepping_model, together
from fedrecplus.audit.attacks._solved import nearest_solution
from fedrecplus.settings import Settings

_RIDGE = 1e-3
_MOST_ROUNDS = 30


class UStep(Attack[Settings]):
    """The attack."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the last upload: the share that each row had in all fits of the weights, by least squares."""
        of, sent = of_model(transcript), transcript.uploads(client)
        if of is None or not sent:
            return ()
        if of.fitted == "exactly":
            last = all_uploads(transcript, client)[-1]
            members = np.zeros(len(last.items)) if last.members is None else last.members
            return (Guess(last.round, last.items, last.nearest(transcript.step), members),)
        one_by_one = readings(transcript, client)
        pairs = [(a, b) for a, b in pairwise(one_by_one) if b.order == a.order + 1 and a.pure.all() and b.pure.all()]
        if not pairs:
            return ()
        last = pairs[-1][1]
        systems = [equations(transcript, a, b, last.items) for a, b in pairs[-_MOST_ROUNDS:]]
        shares = solve(np.vstack([X for X, _ in systems]), np.concatenate([y for _, y in systems]))
        return (Guess(last.round, last.items, last.nearest(transcript.step), shares),)


def all_uploads(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    """A client's uploads, read together."""
    sent = transcript.uploads(client)[-_MOST_ROUNDS:]
    return transcript.once(("together", client), lambda: together(transcript, sent))


def equations(transcript: Transcript, before: Reading, after: Reading, items: Items) -> tuple[Array, Array]:
    """(U₁ − U₀)/η + λU₀ = Σ_i m_i e_i V_i with m_i = 1/n for the rows that the step used, else 0.

    Rows that aren't in the later upload of the pair had no part in the step.
    """
    model = stepping_model(transcript)
    X = transcript.columns(after.round)[after.items]
    pulls = (after.ratings - X @ before.w)[:, None] * X
    rate = model.local_rate(after.round) * model.settings.local_epochs
    seen = (after.w - before.w) / rate + model.settings.regularisation * before.w
    wide = np.zeros((X.shape[1], len(items)))
    _, here, there = np.intersect1d(items, after.items, return_indices=True)
    wide[:, here] = pulls[there].T
    trained = model.trained_columns().astype(bool)
    scale = max(float(np.abs(seen[trained]).max()), 1e-12)
    return wide[trained] / scale, seen[trained] / scale


def solve(X: Array, y: Array) -> Array:
    """Ridge towards equal shares: the smallest departure from "all rows alike" that explains the steps."""
    equal = X.sum(axis=1)
    level = float(equal @ y / max(float(equal @ equal), 1e-300))
    return nearest_solution(X, y, np.full(X.shape[1], level), _RIDGE)
