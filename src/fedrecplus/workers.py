"""How many cores there are for this process, and tasks side by side in processes that share them."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import threadpoolctl

from fedrecplus.errors import UserError

Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[[Any], None]
"""passes something picklable on to whoever shows progress"""
Stop = Callable[[], bool]
"""whether the user wants to stop"""

THREADS = "FEDRECPLUS_THREADS"
_LIBRARY_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_POLL_SECONDS = 0.1
_SHORT = 10_000
"""rows of a table that one thread turns in a few hundredths of a second"""


def core_count() -> int:
    """Cores that this process may use: those the system grants it, at most ``FEDRECPLUS_THREADS``."""
    granted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get(THREADS, "")
    return max(1, min(granted, int(wanted))) if wanted.isdigit() else granted


def one_thread() -> contextlib.AbstractContextManager[Any]:
    """Linear algebra without threads: on small matrices they cost more than they give, most on a busy machine."""
    limited: contextlib.AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limited


def threads_for(rows: int) -> contextlib.AbstractContextManager[Any]:
    """Linear algebra of tables with so many rows: on one thread, unless they are long.

    On two busy cores a training of ``fedrec+secure`` on ML-100K took 20 s of processor time otherwise, and 7 so.
    """
    return one_thread() if rows <= _SHORT else contextlib.nullcontext()


@functools.cache
def _libraries() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def on_threads(work: Callable[[Any], Result], parts: Sequence[Any]) -> list[Result]:
    """``work`` on every part, results in order.

    Each with one thread of linear algebra. Threads of its own wait for each other in a loop: on two busy cores
    ``fedrec+secure`` on ML-100K took 31 s of processor time with them, and 4 to 6 without.
    """
    threads = core_count()
    with one_thread():
        if threads == 1 or len(parts) == 1:
            return [work(part) for part in parts]
        return list(_pool(threads, os.getpid()).map(work, parts))


@functools.cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    # keyed by process: threads do not survive a fork
    return ThreadPoolExecutor(threads, thread_name_prefix="fedrecplus")


def worker_count(wanted: int, tasks: int) -> int:
    """Processes for so many tasks; ``wanted`` 0 means one per core."""
    return max(1, min(wanted or core_count(), tasks))


def run_tasks(
    work: Callable[[Task, Tell, Stop], Result],
    tasks: Sequence[Task],
    workers: int = 0,
    *,
    report: Callable[[int, Any], None] = lambda _, __: None,
    stop: Stop = lambda: False,
) -> Iterator[tuple[int, Result]]:
    """Every task's index and result, as they finish. ``workers`` 0: one per core; a single one is this process.

    ``work(task, tell, stop)`` is sent to each process once, with all it holds; what it tells arrives as
    ``report(index, progress)``. When ``stop()`` becomes true, no task begins, those that run are asked to stop, and
    KeyboardInterrupt is raised. Processes share the cores, and end when this one does, however that happens.
    """
    workers = worker_count(workers, len(tasks))
    if workers > 1:
        yield from _in_processes(work, tasks, workers, report, stop)
        return
    for index, task in enumerate(tasks):
        if stop():
            raise KeyboardInterrupt
        yield index, work(task, functools.partial(report, index), stop)


def _in_processes(
    work: Callable[[Any, Tell, Stop], Result],
    tasks: Sequence[Any],
    workers: int,
    report: Callable[[int, Any], None],
    stop: Stop,
) -> Iterator[tuple[int, Result]]:
    context = multiprocessing.get_context("spawn")
    progress, stopping, (alive, lifeline) = context.SimpleQueue(), context.Event(), context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(work, progress, stopping, alive))
    try:
        with _environment_of_children(workers):
            futures = {pool.submit(_run, index, task): index for index, task in enumerate(tasks)}
        left: set[Future[Result]] = set(futures)
        while left:
            done, left = wait(left, _POLL_SECONDS, FIRST_COMPLETED)
            while not progress.empty():
                report(*progress.get())
            if stop() and not stopping.is_set():
                stopping.set()
                for future in left:
                    future.cancel()
            for future in done:
                if not future.cancelled() and not isinstance(future.exception(), KeyboardInterrupt):
                    yield futures[future], future.result()
        if stopping.is_set():
            raise KeyboardInterrupt
    except BrokenProcessPool:
        if stop():  # a signal to the whole process group
            raise KeyboardInterrupt from None
        remedy = "perhaps memory ran out: give fewer --workers; the same command may go on from what is kept"
        raise UserError("a worker process has died", remedy) from None
    except BaseException:
        lifeline.close()  # nobody waits for the results of processes that still work
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for end in (alive, lifeline, progress):
            end.close()


@contextlib.contextmanager
def _environment_of_children(workers: int) -> Iterator[None]:
    """Processes that start in this block have their share of the cores, and don't import the user's script.

    So that a script that calls this package needs no ``if __name__ == "__main__"``.
    """
    threads = dict.fromkeys((THREADS, *_LIBRARY_THREADS), str(max(1, core_count() // workers)))
    before, main = {name: os.environ.get(name) for name in threads}, sys.modules["__main__"]
    os.environ.update(threads)
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


_here: dict[str, Any] = {}
"""in a worker process: its work, and how it reaches the first process"""


def _begin(work: Any, progress: Any, stopping: Any, alive: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process says what follows
    threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
    _here.update(work=work, progress=progress, stop=stopping.is_set)


def _end_with_parent(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv()  # nothing is ever sent: it ends when the other end is closed
    os._exit(1)


def _run(index: int, task: Any) -> Any:
    if _here["stop"]():
        raise KeyboardInterrupt
    return _here["work"](task, lambda what: _here["progress"].put((index, what)), _here["stop"])
