"""Several cases side by side, each in a process of its own: attacks are Python, which shares no core with itself."""

from __future__ import annotations

import multiprocessing
import os
import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from fedrecplus.audit.audit import Case, Extent, audit_case
from fedrecplus.data import Ratings

Tell = Callable[[Case, str, float], None]
_PATIENCE = 0.2
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def run(
    cases: Sequence[Case],
    training: Ratings,
    test: Ratings,
    extent: Extent,
    workers: int = 0,
    tell: Tell = lambda _, __, ___: None,
) -> list[dict[str, Any]]:
    """All rows of all cases, in the cases' order. ``workers`` 0: one per core."""
    workers = max(1, min(workers or len(os.sched_getaffinity(0)), len(cases)))
    if workers == 1:
        return [row for case in cases for row in audit_case(case, training, test, extent, _teller(tell, case))]
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, _one_thread_each(), ProcessPoolExecutor(workers, context) as pool:
        news = manager.Queue()
        futures = [pool.submit(_work, place, case, training, test, extent, news) for place, case in enumerate(cases)]
        for place, what, share in _as_it_comes(news, futures):
            tell(cases[place], what, share)
        return [row for future in futures for row in future.result()]


def _teller(tell: Tell, case: Case) -> Callable[[str, float], None]:
    return lambda what, share: tell(case, what, share)


def _work(place: int, case: Case, training: Ratings, test: Ratings, extent: Extent, news: Any) -> list[dict[str, Any]]:
    return audit_case(case, training, test, extent, lambda what, share: news.put((place, what, share)))


def _as_it_comes(news: Any, futures: Sequence[Future[Any]]) -> Iterator[tuple[int, str, float]]:
    """Progress of all cases until they are done; an error in one of them ends it."""
    while not all(future.done() for future in futures):
        if any(future.done() and future.exception() for future in futures):
            for future in futures:
                future.cancel()
            return
        try:
            yield news.get(timeout=_PATIENCE)
        except queue.Empty:
            continue


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started now calculate on one core: there is one process per core."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
