"""Who trains a search's trials: this process one after the other, or a crew of processes side by side.

Processes train and tell their learning curves; which settings come next and what is given up is decided in one place,
so only one process ever writes to the study.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from fedrecplus.config import Config
from fedrecplus.errors import UserError
from fedrecplus.experiments.validation import Cut, End, Event, Stop, learning_curve

_PATIENCE = 0.2
"""seconds between looks at whether the user wants to stop"""
_THREAD_SETTINGS = ("FEDRECPLUS_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Crew(Protocol):
    """What the search knows of those who train."""

    @property
    def free(self) -> bool:
        """Whether one more training can begin."""

    def begin(self, number: int, config: Config) -> None:
        """Let a training begin; the number is what its events go by."""

    def next(self) -> tuple[int, Event]:
        """The next thing that is heard. Raises KeyboardInterrupt when the user wants to stop."""

    def answer(self, number: int, go_on: bool) -> None:
        """Every ``Point`` must be answered: on with the training, or give it up."""


@contextlib.contextmanager
def open_crew(cuts: Sequence[Cut], workers: int, stop: Stop) -> Iterator[Crew]:
    """A crew of so many processes; a crew of one is this process. When the block ends, so do they."""
    if workers == 1:
        yield _Here(cuts, stop)
        return
    crew = _Processes(workers, stop)
    try:
        crew.start(cuts)
        yield crew
    finally:
        crew.dismiss()


class _Here:
    """This process, with all its threads for one training at a time."""

    def __init__(self, cuts: Sequence[Cut], stop: Stop) -> None:
        self._cuts, self._stop = cuts, stop
        self._running: tuple[int, Iterator[Event]] | None = None

    @property
    def free(self) -> bool:
        return self._running is None

    def begin(self, number: int, config: Config) -> None:
        self._running = number, learning_curve(self._cuts, config, self._stop)

    def next(self) -> tuple[int, Event]:
        assert self._running
        number, curve = self._running
        event = next(curve)
        if isinstance(event, End):
            self._running = None
        return number, event

    def answer(self, number: int, go_on: bool) -> None:
        if not go_on:
            self._running = None


class _Processes:
    """Processes that share the cores: each has a pipe, and waits for an answer to every point that it tells."""

    def __init__(self, workers: int, stop: Stop) -> None:
        self._workers, self._stop = workers, stop
        self._processes: list[Any] = []
        self._idle: list[Connection] = []
        self._running: dict[int, Connection] = {}

    def start(self, cuts: Sequence[Cut]) -> None:
        context = multiprocessing.get_context("spawn")
        with _threads_each(self._workers):
            for _ in range(self._workers):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(list(cuts), theirs), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._idle.append(ours)

    def dismiss(self) -> None:
        for process in self._processes:
            process.terminate()  # nothing is lost: what is not told yet is no trial
        for process in self._processes:
            process.join()

    @property
    def free(self) -> bool:
        return bool(self._idle)

    def begin(self, number: int, config: Config) -> None:
        connection = self._idle.pop()
        self._running[number] = connection
        self._send(connection, config)

    def next(self) -> tuple[int, Event]:
        numbers = {connection: number for number, connection in self._running.items()}
        ready: list[Any] = []
        while not ready:
            if self._stop():
                raise KeyboardInterrupt
            ready = wait(list(numbers), _PATIENCE)
        return self._hear(numbers[ready[0]], ready[0])

    def answer(self, number: int, go_on: bool) -> None:
        self._send(self._running[number], go_on)
        if not go_on:
            self._idle.append(self._running.pop(number))

    def _hear(self, number: int, connection: Connection) -> tuple[int, Event]:
        try:
            event = connection.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if isinstance(event, BaseException):
            raise event
        if isinstance(event, End):
            self._idle.append(self._running.pop(number))
        return number, event

    def _send(self, connection: Connection, what: Any) -> None:
        try:
            connection.send(what)
        except OSError:
            raise self._gone() from None

    def _gone(self) -> Exception:
        if self._stop():
            return KeyboardInterrupt()  # type: ignore[return-value]  # SIGTERM to the whole group
        remedy = "perhaps memory ran out: give fewer --workers; the same command goes on with the study"
        return UserError("a worker process has died", remedy)


@contextlib.contextmanager
def _threads_each(workers: int) -> Iterator[None]:
    """Processes that start in this block have their share of the cores, in kernels and in linear algebra."""
    from fedrecplus.fast.threads import thread_count  # here: it brings numba, which takes its time

    each = str(max(1, thread_count() // workers))
    before = {name: os.environ.get(name) for name in _THREAD_SETTINGS}
    os.environ.update(dict.fromkeys(_THREAD_SETTINGS, each))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(cuts: list[Cut], connection: Connection) -> None:
    """A worker's life: a config, its learning curve, the next config, until nobody listens any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process says what follows
    parent = multiprocessing.parent_process()
    assert parent
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            config = connection.recv()
            try:
                for event in learning_curve(cuts, config, lambda: not parent.is_alive()):
                    connection.send(event)
                    if isinstance(event, End) or not connection.recv():
                        break
            except (EOFError, OSError):
                raise
            except Exception as error:
                connection.send(error)
