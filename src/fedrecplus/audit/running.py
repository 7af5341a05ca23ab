"""Several cases side by side, each in a process of its own: attacks are Python, which shares no core with itself."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fedrecplus.audit.audit import Case, Extent, audit_case
from fedrecplus.data import Ratings
from fedrecplus.workers import Stop, run_tasks
from fedrecplus.workers import Tell as Send

Tell = Callable[[Case, str, float], None]


def run(
    cases: Sequence[Case],
    training: Ratings,
    test: Ratings,
    extent: Extent,
    workers: int = 0,
    tell: Tell = lambda _, __, ___: None,
) -> list[dict[str, Any]]:
    """All rows of all cases, in the cases' order. ``workers`` 0: one per core."""
    work = functools.partial(_audit, training, test, extent)
    found = dict(run_tasks(work, cases, workers, told=lambda index, news: tell(cases[index], *news)))
    return [row for index in range(len(cases)) for row in found[index]]


def _audit(training: Ratings, test: Ratings, extent: Extent, case: Case, send: Send, _: Stop) -> list[dict[str, Any]]:
    return audit_case(case, training, test, extent, lambda what, share: send((what, share)))
