"""Matrix factorisation around a global mean, r̂ = μ + b_u + b_i + U·V. The user bias stays on the device.

After: Koren, Bell, Volinsky 2009
"""

from __future__ import annotations

from fedrecplus.parts.model.mf import Mf


class BiasedMf(Mf):
    """``mf`` with biases."""

    BIASES = True
