"""Estimates of the constants that the theorem assumes, from the rounds that were looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.experiments.theory.gradients import GradientRows


@dataclass(frozen=True)
class Look:
    """What was measured at one state."""

    round: int
    gradient: float
    """‖∇f‖², f the mean over clients of the loss on rated rows"""
    surrogate: float
    """‖∇f̃‖², clients weighed as the run weighs them"""
    distance: float
    """‖∇f − ∇f̃‖²"""
    dissimilarity: tuple[float, float]
    """mean over clients of ‖∇F_u‖², uniform and as weighed"""
    objective: float
    smooth: float
    variance: float
    gap: float
    """largest ‖∇F̄_u − ∇F̃_u‖² of a client: rated rows against pseudo rows"""
    alpha: float
    chi_wp: float
    """χ²_{w‖p}"""
    chi_pw: float
    moved: float
    """mean over clients of ‖x_K − x‖²: how far local training went"""


@dataclass(frozen=True)
class Constants:
    """One estimate each, the worst over the rounds that were looked at. None is a bound for all x."""

    L: float
    sigma_L: float
    sigma_G: float
    A: float
    rho: float
    alpha: float
    chi_wp: float
    chi_pw: float


def look(number: int, rows: GradientRows, p: Array, moved: float, batch_size: int) -> Look:
    """Measure one state; ``p`` are the clients' weights, summing to one."""
    true, w = rows.true(), np.full(rows.clients, 1.0 / rows.clients)
    of_w, of_p, norms = true.mean(w), true.mean(p), true.norms()
    return Look(
        round=number,
        gradient=float((of_w**2).sum()),
        surrogate=float((of_p**2).sum()),
        distance=float(((of_w - of_p) ** 2).sum()),
        dissimilarity=(float(norms @ w), float(norms @ p)),
        objective=true.objective(),
        smooth=rows.smooth,
        variance=float(rows.local_variance(batch_size).max()),
        gap=_gap(rows),
        alpha=float(rows.rated.mean()),
        chi_wp=float(((w - p) ** 2 / p).sum()),
        chi_pw=float(((w - p) ** 2 / w).sum()),
        moved=moved,
    )


def _gap(rows: GradientRows) -> float:
    """max_u ‖∇F̄_u − ∇F̃_u‖². Rated and pseudo rows are disjoint, so the two never cancel. Paper: Assumption 4"""
    if rows.rated.all():
        return 0.0
    alpha = rows.alpha[rows.client]
    share = np.where(rows.rated, alpha, 1.0 - alpha)
    gaps = rows.sums((rows.gradient**2).sum(axis=1) / share**2)
    return float(gaps[rows.alpha < 1.0].max())


def constants(looks: Sequence[Look]) -> Constants:
    """The worst of all looks; A and σ_G together, so that Assumption 3 holds at every look with as little as can be.

    Paper: Assumptions 1 to 4
    """
    A, sigma_G = dissimilarity(looks)
    return Constants(
        L=max(each.smooth for each in looks),
        sigma_L=float(np.sqrt(max(each.variance for each in looks))),
        sigma_G=sigma_G,
        A=A,
        rho=float(np.sqrt(max(each.gap for each in looks))),
        alpha=min(each.alpha for each in looks),
        chi_wp=max(each.chi_wp for each in looks),
        chi_pw=max(each.chi_pw for each in looks),
    )


def dissimilarity(looks: Sequence[Look]) -> tuple[float, float]:
    """A and σ_G: A² + 1 is the slope of mean ‖∇F_u‖² over ‖mean ∇F_u‖², σ_G² what is left at the worst look.

    Paper: Assumption 3, with the two sets of weights that a run has: uniform and its own
    """
    norms = np.array([value for each in looks for value in each.dissimilarity])
    means = np.array([value for each in looks for value in (each.gradient, each.surrogate)])
    slope = 1.0
    if np.ptp(means) > 0:
        slope = max(1.0, float(np.polyfit(means, norms, 1)[0]))
    return float(np.sqrt(slope - 1.0)), float(np.sqrt(max(0.0, float((norms - slope * means).max()))))


EVEN = 0.01
"""χ² below this: nobody weighs a tenth more or less than others, in the quadratic mean"""


def weights_in_words(content: dict[str, Any]) -> str:
    """From the JSON of ``theory``: in which rounds weights were even, and when they were not.

    >>> weights_in_words({"rounds": [1, 2, 5, 20, 60], "chi_wp": [0.3, 0.001, 0.004, 0.7, 0.2]})
    'Weights, by χ² against uniform ones: even in rounds 2 to 5, most uneven in round 20 (0.70), 0.20 in round 60.'
    >>> weights_in_words({"rounds": [1, 2], "chi_wp": [0.0, 0.0]})
    'Weights, by χ² against uniform ones: even in every round that was looked at.'
    """
    rounds, chi = content["rounds"], content["chi_wp"]
    even = [number for number, each in zip(rounds, chi, strict=True) if each < EVEN]
    said = "Weights, by χ² against uniform ones: "
    if len(even) == len(rounds):
        return f"{said}even in every round that was looked at."
    top = max(range(len(chi)), key=chi.__getitem__)
    parts = [
        f"even in {_rounds(even)}" if even else "even in no round that was looked at",
        f"most uneven in round {rounds[top]} ({chi[top]:.2f})",
        f"{chi[-1]:.2f} in round {rounds[-1]}",
    ]
    return f"{said}{', '.join(parts[: 2 + (top != len(chi) - 1)])}."


def _rounds(numbers: Sequence[int]) -> str:
    return f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {numbers[0]} to {numbers[-1]}"
