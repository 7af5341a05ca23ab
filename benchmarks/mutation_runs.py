"""Tests collected once, and a fork of that process for every mutant."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import itertools
import json
import os
import resource
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from benchmarks.mutation import PACKAGE, ROOT, Mutant

LIMIT = 10.0
"""seconds of processor time that a mutant may take beyond three times what its tests take without a change"""
TOO_LONG, UNTESTED = "time", None
Fate = tuple[Mutant, str | None]


def run_mutants(mutants: Sequence[Mutant], tests: Sequence[str], workers: int) -> Iterator[Fate]:
    """Each mutant with the test that noticed it; None where none did."""
    files = sorted({str(PACKAGE / mutant.file) for mutant in mutants})
    fates = _Fates(mutants, workers)
    options = ("-s", "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:xdist", "-m", "not slow")
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:  # whatever the tests import stays there
        os.close(reading)
        with os.fdopen(writing, "w") as fates.out:
            code = pytest.main([*options, "-o", "addopts=--doctest-modules", *tests, *files], plugins=[fates])
        os._exit(0 if fates.finished else int(code) or 1)
    os.close(writing)
    with os.fdopen(reading) as lines:
        for line in lines:
            number, killer = json.loads(line)
            yield mutants[number], killer
    if os.waitpid(child, 0)[1] != 0:
        raise SystemExit(f"the tests {' '.join(tests)} could not be collected")


class _Fates:
    """A plugin of pytest that runs its items once for every mutant."""

    def __init__(self, mutants: Sequence[Mutant], workers: int) -> None:
        self.mutants, self.workers, self.out = mutants, workers, sys.stdout
        self.finished = False
        self.report: Callable[[Any], None] = lambda _: None
        self.kills: dict[tuple[str, str], list[str]] = defaultdict(list)
        """tests that have noticed changes of a function, the latest last"""

    def pytest_collection(self) -> None:
        """A failure needs no smallest example."""
        from hypothesis import Phase, settings  # here: pytest wants to load it first

        phases = [phase for phase in settings().phases if phase in (Phase.explicit, Phase.generate)]
        settings.register_profile("mutation", settings(), phases=phases)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Whatever a fork does with it."""
        self.report(report)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own."""
        if session.testsfailed:
            return True
        items = {item.nodeid: item for item in session.items}
        found = self._in_fork(lambda write: _unchanged(self, list(items.values()), write))
        callers, seconds, failing = json.loads(found.read())
        for name in failing:
            print(f"{name} fails without any change, and is left out", file=sys.stderr, flush=True)
        waiting: dict[int, tuple[int, Any]] = {}
        for number, mutant in enumerate(self.mutants):
            own = self._ordered(mutant, callers, seconds)
            if not own:
                self._tell(number, UNTESTED)
                continue
            if len(waiting) == self.workers:
                self._wait(waiting)
            limit = LIMIT + 3.0 * sum(seconds[name] for name in own)
            run = [items[name] for name in own]
            reader = self._in_fork(partial(_changed, self, mutant, run, limit))
            waiting[reader.pid] = number, reader
        while waiting:
            self._wait(waiting)
        self.finished = True
        return True

    def _ordered(self, mutant: Mutant, callers: dict[str, list[str]], seconds: dict[str, float]) -> list[str]:
        """The tests that call the function: those that noticed its last changes, then the shortest."""
        kills = self.kills[mutant.file, mutant.function]
        latest = {name: place for place, name in enumerate(kills)}
        own = callers.get(f"{mutant.file}::{mutant.function}", [])
        return sorted(own, key=lambda name: (-latest.get(name, -1), seconds[name]))

    def _in_fork(self, work: Callable[[Any], None]) -> Any:
        """What a fork writes, as a file with the fork's number."""
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            os.close(reading)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            with contextlib.suppress(BaseException), os.fdopen(writing, "w") as write:
                work(write)
            os._exit(0)
        os.close(writing)
        return _Reader(pid, reading)

    def _wait(self, waiting: dict[int, tuple[int, Any]]) -> None:
        """Until a fork has ended."""
        pid, status = os.waitpid(-1, 0)
        number, reader = waiting.pop(pid)
        said = json.loads(reader.read(wait=False) or "null")
        killer = TOO_LONG if os.WIFSIGNALED(status) else said[0] if said else "crash"
        if killer not in (None, TOO_LONG, "crash"):
            mutant = self.mutants[number]
            self.kills[mutant.file, mutant.function].append(killer)
        self._tell(number, killer)

    def _tell(self, number: int, killer: str | None) -> None:
        print(json.dumps([number, killer]), file=self.out, flush=True)


class _Reader:
    def __init__(self, pid: int, reading: int) -> None:
        self.pid, self.file = pid, os.fdopen(reading)

    def read(self, wait: bool = True) -> str:
        with self.file:
            text = self.file.read()
        if wait:
            os.waitpid(self.pid, 0)
        return text


def _unchanged(plugin: _Fates, items: list[Any], write: Any) -> None:
    """Which tests call which functions, and how long each takes; nothing where one fails."""
    files = {str((ROOT / PACKAGE / mutant.file).resolve()): mutant.file for mutant in plugin.mutants}
    callers: dict[str, dict[str, None]] = defaultdict(dict)
    seconds: dict[str, float] = {}
    failing: set[str] = set()
    running = ""

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := files.get(frame.f_code.co_filename)) is not None:
            outermost = frame.f_code.co_qualname.split(".<locals>")[0]
            callers[f"{file}::{outermost}"][running] = None

    def note(report: Any) -> None:
        if report.failed:
            failing.add(report.nodeid)

    plugin.report = note
    threading.setprofile(profile)
    for item, following in itertools.pairwise([*items, None]):
        running, began = item.nodeid, _processor_seconds()
        sys.setprofile(profile)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        sys.setprofile(None)
        seconds[running] = _processor_seconds() - began
    together = _sharing(items)
    json.dump(
        [
            {name: sorted({*own, *(t for n in own for t in together[n])} - failing) for name, own in callers.items()},
            seconds,
            sorted(failing),
        ],
        write,
    )


def _sharing(items: list[Any]) -> dict[str, set[str]]:
    """The tests that share a module's fixture with a test: what it calls is noted of the first of them alone."""
    users: dict[Any, set[str]] = defaultdict(set)
    for item in items:
        for fixtures in item._fixtureinfo.name2fixturedefs.values():
            if fixtures[-1].scope != "function" and not fixtures[-1].func.__module__.startswith("_pytest"):
                users[id(fixtures[-1])].add(item.nodeid)
    found: dict[str, set[str]] = defaultdict(set)
    for own in users.values():
        for name in own:
            found[name] |= own
    return found


def _changed(plugin: _Fates, mutant: Mutant, items: list[Any], limit: float, write: Any) -> None:
    """The first test that fails with the change, or None."""

    def stop(report: Any) -> None:
        if report.failed:
            json.dump([report.nodeid], write)
            write.close()
            os._exit(0)

    plugin.report = stop
    apply(mutant)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limit)
    for item, following in itertools.pairwise([*items, None]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    json.dump([None], write)


def apply(mutant: Mutant) -> None:
    """Give the function its changed code: whoever has imported it has that, too."""
    name = ".".join(("fedrecplus", *Path(mutant.file).with_suffix("").parts))
    module = importlib.import_module(name)
    function = _function(module, mutant.function)
    tree = ast.parse(mutant.source)
    function.__code__ = _code(compile(tree, str(module.__file__), "exec"), mutant.function)
    arguments = next(node for node in ast.walk(tree) if _is(node, mutant.function)).args  # type: ignore[attr-defined]
    if arguments.defaults:
        function.__defaults__ = tuple(_value(node, module) for node in arguments.defaults)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    function.__kwdefaults__ = {own.arg: _value(node, module) for own, node in named if node is not None}


def _is(node: ast.AST, function: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == function.rpartition(".")[2]


def _value(node: ast.expr, module: Any) -> Any:
    return eval(compile(ast.Expression(node), "<default>", "eval"), vars(module))


def _function(module: Any, qualified: str) -> FunctionType:
    found: Any = module
    for part in qualified.split("."):
        found = inspect.getattr_static(found, part)
    for inner in ("fget", "func", "__func__"):
        found = getattr(found, inner, found)
    unwrapped: FunctionType = inspect.unwrap(found)
    return unwrapped


def _code(code: CodeType, qualified: str) -> CodeType:
    """The code object of a qualified name within a module's."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_qualname == qualified:
                return constant
            with contextlib.suppress(LookupError):
                return _code(constant, qualified)
    raise LookupError(qualified)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
