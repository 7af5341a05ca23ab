"""The paper's attack: two successive uploads and the known step of U between them. Needs no rating scale.

The direction of U is seen in both uploads. The U step ties the two unknown lengths together, and the part of it that is
orthogonal to the later direction leaves one equation for the earlier length.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks._evidence import evidence
from fedrecplus.audit.attacks._local_steps import local_step_sizes
from fedrecplus.audit.attacks._reading import Reading, readings
from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Transcript
from fedrecplus.gradients import contrasted
from fedrecplus.model import Shape, predict, prior

Array = NDArray[np.float64]
_CHANGED = 4.0
_ABSENT = 20.0


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Of the later upload of every successive pair: ratings, and rows that were new or whose rating changed."""
    read = readings(transcript, client)
    pairs = [(before, after) for before, after in pairwise(read) if after.order == before.order + 1]
    return tuple(_guess(transcript, before, after) for before, after in pairs)


def _guess(transcript: Transcript, before: Reading, after: Reading) -> Guess:
    solved = solve(transcript, before, after)
    score = evidence(transcript, solved) - _ABSENT * ~np.isin(after.items, before.items)
    _, here, there = np.intersect1d(after.items, before.items, return_indices=True)
    change = np.abs(after.ratings[here] - before.ratings[there]) / transcript.step
    score[here] -= _CHANGED * np.nan_to_num(np.minimum(change, 1.0))
    return Guess(after.round, after.items, solved.nearest(transcript.step), score)


def solve(transcript: Transcript, before: Reading, after: Reading) -> Reading:
    """The later upload with U as the two uploads' directions and the U step between them give it.

    s₁û₁ = s₀(1 − ηλ)û₀ + ηλ·prior + η·mean(e V), where e_i = c_i/s₁ + (s₁û₁ − s₀û₀)·V_i is what the step saw. It is
    linear in s₀; the part orthogonal to s₀'s factor leaves one equation for s₁.
    Paper: Eq. (7), with its sign put right
    """
    if Shape.of(transcript.config.model).biases or not (before.pure.any() and after.pure.all()):
        return after
    V = transcript.broadcast(after.round).V[after.items]
    length = max(float(np.linalg.norm(after.U)), 1e-12)
    u0, u1 = before.U[:-1] / max(float(np.linalg.norm(before.U)), 1e-12), after.U[:-1] / length
    sizes = local_step_sizes(transcript, after.round, V)

    def moved(gradient: Array) -> Array:
        return rate * contrasted(gradient, sizes.contrast, sizes.factors)

    U_prior, _ = prior(transcript.config.model, transcript.mean)
    rate = sizes.rate * transcript.config.client.local_epochs
    inverse = moved((after.errors * length) @ V / len(V))
    linear = moved((V @ u1) @ V / len(V)) - u1
    constant = moved(sizes.decay_U * U_prior[:-1])
    earlier = u0 - moved(sizes.decay_U * u0 + (V @ u0) @ V / len(V))
    earlier /= max(float(np.linalg.norm(earlier)), 1e-300)
    linear, constant, inverse = (part - (part @ earlier) * earlier for part in (linear, constant, inverse))
    factor = _length(linear, constant, inverse, length) / length
    U, errors = after.U * factor, after.errors / factor
    return replace(after, U=U, errors=errors, ratings=predict(U, V, transcript.mean) + errors)


def _length(linear: Array, constant: Array, inverse: Array, start: float) -> float:
    """The s with the smallest |s·linear + constant + inverse/s|, among the stationary points s > 0."""
    # the square, times s², differentiated: 2l² s⁴ + 2(l·k) s³ − 2(k·i) s − 2 i² = 0
    powers = [linear @ linear, linear @ constant, 0.0, -constant @ inverse, -inverse @ inverse]
    roots = np.roots(np.array(powers, dtype=np.float64))
    real = roots[(np.abs(roots.imag) < 1e-6 * np.abs(roots)) & (roots.real > 1e-9)].real
    if len(real) == 0:
        return start
    off = [np.linalg.norm(s * linear + constant + inverse / s) for s in real]
    return float(real[int(np.argmin(off))])
