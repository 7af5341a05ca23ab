"""The paper's attack: two successive uploads and the known step of U between them. Needs no rating scale.

The direction of U is seen in both uploads. The U step ties the two unknown lengths together, and the part of it that is
orthogonal to the later direction leaves one equation for the earlier length. Where the model solves for its weights,
two uploads have twice the equations of one (``_solved``).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._evidence import evidence
from fedrecplus.audit.attacks._reading import Reading, in_rows_of, of_model, reading, stepping_model, together
from fedrecplus.audit.transcript import Sent
from fedrecplus.settings import Settings

_CHANGED = 4.0
_ABSENT = 20.0


class TwoRound(Attack[Settings]):
    """The attack."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the later upload of every successive pair: ratings, and rows that were new or whose rating changed."""
        pairs = [
            (before, after) for before, after in pairwise(transcript.uploads(client)) if after.order == before.order + 1
        ]
        return tuple(_guess(transcript, before, after) for before, after in pairs)


def _guess(transcript: Transcript, first: Sent, second: Sent) -> Guess:
    before, after = reading(transcript, first), reading(transcript, second)
    of, solved = of_model(transcript), after
    if of is not None and of.fitted == "exactly":
        before, solved = together(transcript, (first, second))
        after = solved
    elif of is not None:
        solved = solve(transcript, before, after)
    score = evidence(transcript, solved) - _ABSENT * ~np.isin(after.items, before.items)
    change = np.abs(after.ratings - in_rows_of(after.items, before.items, before.ratings)) / transcript.step
    score -= _CHANGED * np.nan_to_num(np.minimum(change, 1.0))
    return Guess(after.round, after.items, solved.nearest(transcript.step), score)


def solve(transcript: Transcript, before: Reading, after: Reading) -> Reading:
    """The later upload with U as the two uploads' directions and the U step between them give it.

    s₁û₁ = s₀(1 − ηλ)û₀ + η·mean(e V), where e_i = c_i/s₁ + (s₁û₁ − s₀û₀)·V_i is what the step saw. It is linear in s₀;
    the part orthogonal to s₀'s factor leaves one equation for s₁. With several epochs, as if they were one large step.
    Paper: Eq. (7), with its sign put right
    """
    model, of = stepping_model(transcript), of_model(transcript)
    lengths_are_all = of is not None and set(of.known.values()) <= {0.0}
    if not (lengths_are_all and before.pure.any() and after.pure.all()):
        return after
    V = transcript.broadcast(after.round).V[after.items]
    length = max(float(np.linalg.norm(after.w)), 1e-12)
    wide = V.shape[1]
    u0, u1 = before.w[:wide] / max(float(np.linalg.norm(before.w)), 1e-12), after.w[:wide] / length
    rate = model.local_rate(after.round) * model.settings.local_epochs
    inverse = rate * (after.errors * length) @ V / len(V)
    linear = rate * (V @ u1) @ V / len(V) - u1
    earlier = u0 - rate * (model.settings.regularisation * u0 + (V @ u0) @ V / len(V))
    earlier /= max(float(np.linalg.norm(earlier)), 1e-300)
    linear, inverse = (part - (part @ earlier) * earlier for part in (linear, inverse))
    # |s·linear + inverse/s| is smallest where s⁴ = |inverse|²/|linear|²
    factor = np.sqrt(np.linalg.norm(inverse) / max(float(np.linalg.norm(linear)), 1e-300)) / length
    if not 1e-9 < factor < 1e9:
        return after
    w, errors = after.w * factor, after.errors / factor
    return replace(after, w=w, errors=errors, ratings=V @ w[:wide] + errors)
