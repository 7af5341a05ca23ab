"""Keyed draws inside kernels: ``randomness.py`` in Triton."""

from __future__ import annotations

import triton.language as tl

from fedrecplus.engines.cuda.card import kernel


@kernel
def mix(key: tl.tensor, index: tl.tensor) -> tl.tensor:
    """Hash a key with one index into a new key. See ``randomness.mix``."""
    z = key + (index + 1) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@kernel
def to_unit(key: tl.tensor) -> tl.tensor:
    """A key as a float64, uniform on [0, 1). See ``randomness.to_unit``."""
    return (key >> 11).to(tl.float64) * (1.0 / 9007199254740992.0)
