"""The derivative that inversion steps by is the derivative of the client's training."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.audit.attacks._unrolled import Known, follow, normal
from fedrecplus.parts import Model


def a_round(epochs: int, biases: bool) -> tuple[Known, np.ndarray, np.ndarray]:
    model = Model.choose("biased-mf" if biases else "mf", factors=4)
    random = np.random.default_rng(epochs)
    V = random.normal(0.5, 0.3, (9, model.columns))
    known = Known(V, 0.1, 0.02, epochs, model.trained_columns())
    U = random.normal(0.5, 0.2, model.user_columns)
    U[4:] = (1.0, 0.3) if biases else (0.0,)
    return known, U, random.integers(1, 6, 9).astype(float)


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_normal_equations_match_finite_differences(epochs: int, biases: bool) -> None:
    known, U, targets = a_round(epochs, biases)
    path = follow(known, U, targets)
    off = np.random.default_rng(1).normal(size=path.V.shape)
    free = np.flatnonzero(known.trained)
    point, tiny = np.concatenate([U[free], targets]), 1e-5

    def end(x: np.ndarray) -> np.ndarray:
        moved = U.copy()
        moved[free] = x[: len(free)]
        return follow(known, moved, x[len(free) :]).V.ravel()

    J = np.column_stack([(end(point + tiny * d) - end(point - tiny * d)) / (2 * tiny) for d in np.eye(len(point))])
    gram, right = normal(known, path, off)
    assert gram == pytest.approx(J.T @ J, rel=1e-5, abs=1e-7)
    assert right == pytest.approx(J.T @ off.ravel(), rel=1e-5, abs=1e-6)
