"""What the array standard lacks is the same in NumPy and torch, for one client and for a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fedrecplus.arrays import (
    NOTHING,
    add_to_diagonal,
    greatest_rows,
    in_numpy,
    like,
    product,
    remember_equal,
    remember_last,
    rows_of,
    solve,
    zeros,
)

DRAWS = np.random.default_rng(5)


def systems(size: int, *batch: int) -> tuple[Any, Any]:
    A = DRAWS.normal(size=(*batch, 2 * size, size))
    return A.swapaxes(-1, -2) @ A + np.eye(size), DRAWS.normal(size=(*batch, size))


@pytest.fixture(params=["numpy", "torch"])
def move(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """From NumPy to the namespace under test."""
    if request.param == "numpy":
        return lambda array: array
    torch = pytest.importorskip("torch")
    return lambda array: torch.from_numpy(array)


@pytest.mark.parametrize("size", [1, 2, 5, 8])
@pytest.mark.parametrize("batch", [(), (7,), (3, 2)])
def test_systems_are_solved_and_the_last_columns_of_inverses_given(
    move: Callable[[Any], Any], size: int, batch: tuple[int, ...]
) -> None:
    gram, moment = systems(size, *batch)
    for columns in (0, 1, size // 2, size):
        solution, inverse = (np.asarray(found) for found in solve(move(gram), move(moment), columns))
        np.testing.assert_allclose(gram @ solution[..., None], moment[..., None], rtol=0, atol=1e-10)
        np.testing.assert_allclose(inverse, np.linalg.inv(gram)[..., size - columns :], rtol=0, atol=1e-11)


def test_a_batch_keeps_the_precision_and_the_matrices_that_it_was_given() -> None:
    gram, moment = (array.astype(np.float32) for array in systems(6, 4))
    before = gram.copy()
    solution, inverse = solve(gram, moment, 3)
    assert solution.dtype == inverse.dtype == np.float32
    np.testing.assert_array_equal(gram, before)


def test_a_system_has_the_same_bits_in_every_batch() -> None:
    gram, moment = systems(9, 50)
    together, alone = solve(gram, moment, 4), solve(gram[13:14], moment[13:14], 4)
    for whole, one in zip(together, alone, strict=True):
        np.testing.assert_array_equal(whole[13], one[0])


@pytest.mark.parametrize("width", [0, 1, 6])
def test_the_greatest_of_rows_is_that_of_those_that_are_there(move: Callable[[Any], Any], width: int) -> None:
    table, items = DRAWS.uniform(-2.0, 2.0, size=(9, 4)), DRAWS.integers(NOTHING, 9, size=(5, width))
    items[3] = NOTHING
    found = np.asarray(greatest_rows(move(table), move(items), -2.5))
    for line, own in zip(found, items, strict=True):
        expected = (
            table[own[own != NOTHING]].max(axis=0, initial=-np.inf) if (own != NOTHING).any() else np.full(4, -2.5)
        )
        np.testing.assert_array_equal(line, expected)


def test_rows_of_no_item_are_zero(move: Callable[[Any], Any]) -> None:
    table = DRAWS.normal(size=(5, 3))
    items = np.array([[4, 0, NOTHING], [NOTHING, 2, 2]])
    rows = np.asarray(rows_of(move(table), move(items)))
    np.testing.assert_array_equal(rows, np.where(items[..., None] >= 0, table[items], 0.0))
    np.testing.assert_array_equal(np.asarray(rows_of(move(table), move(items[1, 1:]))), table[[2, 2]])


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (5, 0)])
def test_rows_of_a_table_without_numbers_have_none_or_zeros(move: Callable[[Any], Any], shape: tuple[int, int]) -> None:
    rows = np.asarray(rows_of(move(np.zeros(shape)), move(np.array([[4, 0, NOTHING]]))))
    np.testing.assert_array_equal(rows, np.zeros((1, 3, shape[1])))


def test_numbers_go_where_other_arrays_are_in_their_precision(move: Callable[[Any], Any]) -> None:
    other = move(np.zeros(2, np.float32))
    moved = like(np.array([1, 2]), other)
    assert type(moved) is type(other)
    assert moved.dtype == other.dtype
    np.testing.assert_array_equal(in_numpy(zeros((2, 1), moved)), np.zeros((2, 1), np.float32))
    assert zeros((1,), other).dtype == other.dtype
    matrices = np.asarray(add_to_diagonal(move(np.ones((2, 3, 3))), move(np.arange(6.0).reshape(2, 3))))
    np.testing.assert_array_equal(matrices[1], np.ones((3, 3)) + np.diag([3.0, 4.0, 5.0]))


def test_products_are_of_a_matrix_and_a_vector_each(move: Callable[[Any], Any]) -> None:
    A, x = DRAWS.normal(size=(4, 3, 2)), DRAWS.normal(size=(4, 2))
    np.testing.assert_allclose(np.asarray(product(move(A), move(x)))[2], A[2] @ x[2], rtol=0, atol=1e-14)


def test_what_was_computed_last_is_remembered_for_the_same_objects_alone() -> None:
    asked = []

    @remember_last
    def total(table: Any, scale: float) -> float:
        asked.append(scale)
        return float(scale * table.sum())

    first, second = np.ones(3), np.ones(3)
    assert [total(first, 2.0), total(first, 2.0), total(second, 2.0), total(first, 3.0)] == [6.0, 6.0, 6.0, 9.0]
    assert asked == [2.0, 2.0, 3.0]


def test_what_takes_long_is_remembered_for_equal_arrays() -> None:
    asked = []

    @remember_equal
    def total(table: Any, scale: Any) -> float:
        asked.append(table)
        return float(scale * table.sum())

    scale, numbers = Scale(), np.arange(3.0)
    tables = [numbers, numbers.copy(), numbers.astype(np.float32), numbers + 1.0, numbers[:2]]
    assert [total(table, scale) for table in tables] == [6.0, 6.0, 6.0, 12.0, 2.0]
    assert [table.dtype.itemsize * len(table) for table in asked] == [24, 12, 24, 16]
    total(numbers[:2], Scale())
    assert len(asked) == 5, "what is no array is the same where it is the same object"


class Scale:
    """Equal to none but itself."""

    def __mul__(self, other: Any) -> Any:
        return 2.0 * other
