"""What goes between server and silos: named arrays and facts in Flower's records, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from fedrecplus.protocol import Broadcast, PublicItems, Sums

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]


def content(arrays: Mapping[str, NDArray[Any]], **facts: Any) -> RecordDict:
    """A message's content."""
    tables = {name: Array(np.ascontiguousarray(table)) for name, table in arrays.items()}
    return RecordDict({"arrays": ArrayRecord(tables), "facts": ConfigRecord(facts)})


def arrays_of(record: RecordDict) -> Arrays:
    """The arrays of a message."""
    return {name: array.numpy() for name, array in record.array_records["arrays"].items()}


def facts_of(record: RecordDict) -> Facts:
    """The facts of a message."""
    return dict(record.config_records["facts"])


def broadcast_arrays(message: Broadcast) -> Arrays:
    """What a round tells silos; they know the items already, and encode them by themselves."""
    return {name: getattr(message, name) for name in ("V", "last_step", "last_covariance", "dense")}


def broadcast_of(arrays: Arrays, round_number: int, public: PublicItems) -> Broadcast:
    """The message that ``broadcast_arrays`` took apart."""
    return Broadcast(round_number, features=np.zeros((0, 0)), public=public, **arrays)


def sums_arrays(sums: Sums) -> Arrays:
    """A silo's sums over its people."""
    numbers = np.array([sums.overall, sums.clients], dtype=np.float64)
    tables = {name: getattr(sums, name) for name in ("total", "weights", "covariance", "statistic")}
    return {**tables, "numbers": numbers}


def sums_of(arrays: Arrays) -> Sums:
    """The sums that ``sums_arrays`` took apart."""
    overall, clients = arrays.pop("numbers")
    return Sums(overall=float(overall), clients=int(clients), **arrays)


def added(parts: list[Sums]) -> Sums:
    """Sums of sums, in the order of silos."""
    first, *others = parts
    whole = replace(first, total=first.total.copy(), weights=first.weights.copy())
    for part in others:
        whole = replace(
            whole,
            **{name: getattr(whole, name) + getattr(part, name) for name in vars(whole) if name != "noise"},
        )
    return whole
