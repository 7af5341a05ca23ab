"""What every encoder's output goes through before cosines are taken."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def unit_rows(E: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of length one, so that a product of rows is their cosine; zero rows stay zero."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(E, lengths, out=np.zeros_like(E, dtype=np.float64), where=lengths > 0)
    return unit
