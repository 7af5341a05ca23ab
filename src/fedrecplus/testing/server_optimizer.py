"""What every server optimizer promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts import ServerOptimizer
from fedrecplus.testing.contract import Contract

AGGREGATE = np.random.default_rng(0).normal(size=(6, 3))
AGGREGATE.flags.writeable = False


class ServerOptimizerContract(Contract[ServerOptimizer[Any]]):
    """A step from the aggregate and as many tables as it says it keeps."""

    kind = "server_optimizer"

    def at_rest(self, dtype: str = "float64") -> list[NDArray[np.float64]]:
        """Its tables before the first round, which can't be written."""
        tables = [np.zeros(AGGREGATE.shape, dtype=dtype) for _ in range(self.part.MOMENTS)]
        for table in tables:
            table.flags.writeable = False
        return tables

    def test_nothing_moves_nothing_from_rest(self) -> None:
        """A round that nobody answers, at the start."""
        moments = self.at_rest()
        for number in range(3):
            step, moments = self.part.step(np.zeros_like(AGGREGATE), moments, number)
            assert (step == 0.0).all()

    def test_it_keeps_as_many_tables_as_it_says_of_the_same_shape_and_type(self) -> None:
        """A checkpoint holds them, and 32-bit tables stay 32-bit."""
        for dtype in ("float64", "float32"):
            step, moments = self.part.step(AGGREGATE.astype(dtype), self.at_rest(dtype), 0)
            assert len(moments) == self.part.MOMENTS
            for table in (step, *moments):
                assert table.shape == AGGREGATE.shape
                assert table.dtype == dtype
                assert np.isfinite(table).all()

    def test_the_same_aggregate_gives_the_same_step(self) -> None:
        """State is passed, not kept."""
        first, second = (self.part.step(AGGREGATE, self.at_rest(), 2)[0] for _ in range(2))
        np.testing.assert_array_equal(first, second)
