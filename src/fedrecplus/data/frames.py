"""Data frames in and out: pandas, polars, pyarrow and whatever else narwhals knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from fedrecplus.errors import UserError, unknown_name

BACKENDS = ("pandas", "polars", "pyarrow")
_COLUMNS = ("user", "item", "rating", "timestamp")
"""of rows without names; the last may be missing"""
_from_dict: Any = nw.from_dict  # its types list the names, which are checked here


def is_frame(source: object) -> bool:
    """Whether it is a data frame that can be read.

    >>> is_frame(pl.DataFrame({"user": [1]})), is_frame([1, 2])
    (True, False)
    """
    return isinstance(_known(source), nw.DataFrame | nw.LazyFrame)


def _known(source: object) -> Any:
    """A frame as narwhals sees it; anything else as it is."""
    try:
        return nw.from_native(source, pass_through=True)
    except DuplicateError as error:
        twice = ", ".join(line.removeprefix("- ") for line in str(error).splitlines()[1:])
        raise UserError(f"the frame has columns of the same name: {twice}", "name each column differently") from None


def tabular(source: object) -> Any:
    """A frame as it is; as one, a sparse matrix of users × items, and rows of user, item, rating and maybe time.

    None of anything else. The numbers of a sparse matrix's rows and columns are the ids, and what is stored in it are
    the ratings.

    >>> tabular(np.array([[1, 7, 4.5], [2, 9, 3.0]]))["user"].to_list()
    [1, 2]
    """
    if is_frame(source):
        return source
    if issparse(source):
        cells: Any = source.tocoo()  # type: ignore[attr-defined]
        return pl.DataFrame({"user": cells.row, "item": cells.col, "rating": cells.data.astype(np.float64)})
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] in (3, 4):
        columns = zip(_COLUMNS, source.T, strict=False)
        return pl.DataFrame({name: _ids(one) if name in ("user", "item") else one.tolist() for name, one in columns})
    if isinstance(source, list) and all(isinstance(row, tuple | list) for row in source):
        widths = {len(row) for row in source}
        if widths in ({3}, {4}):
            columns = zip(_COLUMNS, zip(*source, strict=True), strict=False)
            return pl.DataFrame([pl.Series(name, one, strict=False) for name, one in columns])
    return None


def _ids(column: np.ndarray[Any, Any]) -> Any:
    """Ids beside decimal ratings are decimals in one array; whole ones are whole numbers again."""
    if column.dtype.kind == "f" and bool((column == np.rint(column)).all()):
        return column.astype(np.int64)
    return column.tolist()


def with_index(frame: Any) -> Any:
    """A frame of pandas with named levels of its index among its columns, where ids are after ``groupby``."""
    if not nw.dependencies.is_pandas_like_dataframe(frame):
        return frame
    names = [name for name in frame.index.names if name is not None]
    return frame.reset_index() if names and not set(names) & set(frame.columns) else frame


def as_polars(frame: Any, name: str) -> pl.DataFrame:
    """A frame of any library as one of polars; what pandas calls NaN is missing."""
    known = _known(frame)
    if isinstance(known, nw.LazyFrame):
        known = known.collect()
    if not isinstance(known, nw.DataFrame):
        raise UserError(
            f"{name} is a {type(frame).__name__}, not a data frame", "give a frame of pandas, polars or pyarrow"
        )
    if isinstance(native := known.to_native(), pl.DataFrame):
        return native
    return pl.DataFrame([_series(known.get_column(column)) for column in known.columns])


def _series(column: Any) -> pl.Series:
    """A column of pandas or another library; whole arrays where that is possible, since lists are slow."""
    name = str(column.name)
    if column.dtype.is_numeric():
        return pl.Series(name, column.to_numpy(), nan_to_null=True)
    values = column.to_list()
    try:
        return pl.Series(name, [None if isinstance(value, float) and math.isnan(value) else value for value in values])
    except (TypeError, pl.exceptions.PolarsError):  # numbers and texts in one column
        return pl.Series(name, [None if value is None else str(value) for value in values])


def frame_of(columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]], backend: str = "polars") -> Any:
    """Columns as a frame of the library that is asked for.

    >>> frame_of({"item": [1, 2]}).columns
    ['item']
    """
    if backend not in BACKENDS:
        raise unknown_name("data frame library", backend, BACKENDS)
    try:
        return _from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError:
        raise UserError(f"{backend} isn't installed", f"pip install {backend}, or take backend='polars'") from None


def backend_of(frame: Any) -> str:
    """The library that a frame is of, in which an answer to it should be; polars, if it is of none of those known."""
    known = _known(frame)
    if not isinstance(known, nw.DataFrame | nw.LazyFrame):
        return "polars"
    name = known.implementation.value
    return name if name in BACKENDS else "polars"
