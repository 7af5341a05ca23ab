"""The small data set of the contracts, for all tests."""

from __future__ import annotations

from fedrecplus.testing import small_ratings

__all__ = ["small_ratings"]
