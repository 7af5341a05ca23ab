"""Change one operator, comparison or constant of the paper's code at a time, and see whether its quick tests notice.

``python -m benchmarks.mutation --workers 2`` runs all mutants. No file is touched: tests are collected and timed once,
and every mutant is a fork of that process in which one function has other code. It runs the tests that call the
function, those that noticed its last changes first, then the shortest, until one fails. What survives is printed;
docs/mutants.md says why, and why this is no configuration of another tool.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import functools
import importlib
import inspect
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest

PACKAGE = Path(__file__).parents[1] / "src/fedrecplus"
_PATTERNS = (
    "parts/model/mf.py", "parts/pseudo_items/similar.py", "parts/virtual_ratings/nearest.py", "parts/similarity.py",
    "parts/aggregation/wasserstein.py", "parts/aggregation/_covariance.py", "rounds/[!_]*.py",
    "experiments/theory/[!_]*.py",
)  # fmt: skip
FILES = [str(path.relative_to(PACKAGE)) for pattern in _PATTERNS for path in sorted(PACKAGE.glob(pattern))]
TESTS = (
    "tests/contracts", "tests/rounds", "tests/config/test_presets.py", "tests/engines/test_plain.py",
    "tests/engines/test_fast_equals_reference.py", "tests/privacy/test_rounds.py", "tests/privacy/test_noise.py",
    "tests/theory",
)  # fmt: skip
"""those that should notice, beside the files' own doctests"""
_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,), ast.And: (ast.Or,), ast.Or: (ast.And,), ast.USub: (ast.UAdd,), ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Lt: (ast.GtE, ast.LtE), ast.LtE: (ast.Gt, ast.Lt), ast.Gt: (ast.LtE, ast.GtE), ast.GtE: (ast.Lt, ast.Gt),
}  # fmt: skip
"""what may stand in an operator's place; a comparison is turned round, and loses or gains its edge"""
_SILENT = ("strict", "copy")
"""arguments of ``zip`` and ``astype``: whether lengths are compared or numbers copied changes nothing that comes out"""
_LIMIT = 10.0
"""seconds of processor time that a mutant may take beyond three times what its tests take without a change"""
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    file: str
    function: str
    """its qualified name"""
    line: int
    change: str
    source: str
    """the function with the change, without decorators, in a class of its own if it is a method"""


def mutants(file: str) -> Iterator[Mutant]:
    """Every change within functions. Settings' ranges and constants of modules are no code that runs."""
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    owned = [(own.name, part) for own in tree.body if isinstance(own, ast.ClassDef) for part in own.body]
    for owner, function in [*(("", part) for part in tree.body), *owned]:
        for place, node in enumerate(_inside(function) if isinstance(function, ast.FunctionDef) else ()):
            for way in range(len(_changes(node))):
                other: Any = copy.deepcopy(function)
                changed = list(_inside(other))[place]
                _changes(changed)[way]()
                other.decorator_list = []
                source = ast.unparse(ast.ClassDef(owner, [], [], [other], []) if owner else other)
                change = f"{ast.unparse(node)} → {ast.unparse(changed)}"
                name = f"{owner}.{other.name}".lstrip(".")
                yield Mutant(file, name, getattr(node, "lineno", function.lineno), change, source)


def _inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Body and defaults, without annotations and decorators."""
    defaults = [node for node in (*function.args.defaults, *function.args.kw_defaults) if node is not None]
    for top in (*function.body, *defaults):
        silent = {id(own.value) for own in ast.walk(top) if isinstance(own, ast.keyword) and own.arg in _SILENT}
        yield from (node for node in ast.walk(top) if id(node) not in silent)


def _changes(node: Any) -> list[Callable[[], None]]:
    """Each changes one operator, comparison or number."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign | ast.UnaryOp):
        return [functools.partial(setattr, node, "op", other()) for other in _OPERATORS.get(type(node.op), ())]
    if isinstance(node, ast.Compare):
        first, *more = node.ops
        return [functools.partial(setattr, node, "ops", [other(), *more]) for other in _OPERATORS[type(first)]]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        return [functools.partial(setattr, node, "value", other)]
    return []


def apply(mutant: Mutant) -> None:
    """Give the function its changed code: whoever has imported it has that, too."""
    module = importlib.import_module(".".join(("fedrecplus", *Path(mutant.file).with_suffix("").parts)))
    changed = dict(vars(module))
    exec(compile(mutant.source, str(module.__file__), "exec", annotations.compiler_flag), changed)
    function, other = (_function(names, mutant.function) for names in (vars(module), changed))
    for part in ("__code__", "__defaults__", "__kwdefaults__"):
        setattr(function, part, getattr(other, part))


def _function(names: dict[str, Any], qualified: str) -> FunctionType:
    """What a decorator may have wrapped."""
    first, *rest = qualified.split(".")
    found: Any = functools.reduce(inspect.getattr_static, rest, names[first])
    for inner in ("fget", "func", "__func__"):
        found = getattr(found, inner, found)
    return inspect.unwrap(found)  # type: ignore[no-any-return]


class Runs:
    """A plugin of pytest that runs what was collected once for every mutant."""

    def __init__(self, mutants: Sequence[Mutant], workers: int) -> None:
        self.mutants, self.workers = mutants, workers
        self.killers: dict[Mutant, str | None] = {}
        """the test that noticed it, None where none did"""
        self.failed: Callable[[str], None] = lambda _: None
        self.running: dict[Any, tuple[Mutant, Any]] = {}

    def pytest_collection(self) -> None:
        """A failure needs no smallest example."""
        from hypothesis import Phase, settings  # here: pytest wants to load it first

        settings.register_profile("mutation", settings(), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Tell whoever runs the tests."""
        if report.failed:
            self.failed(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own."""
        items = {item.nodeid: item for item in session.items}
        callers, seconds, failing = _forked(functools.partial(self._profile, items))[1].recv()
        print(f"{len(items)} tests, without any change these fail: {failing or 'none'}", flush=True)
        for mutant in self.mutants:
            if len(self.running) == self.workers:
                self._wait()
            tests = self._tests(mutant, callers[mutant.file, mutant.function] - failing, seconds)
            limit = _LIMIT + 3.0 * sum(seconds[name] for name in tests)
            process, reader = _forked(functools.partial(self._changed, mutant, [items[name] for name in tests], limit))
            self.running[process.sentinel] = mutant, (process, reader)
        while self.running:
            self._wait()
        return True

    def _tests(self, mutant: Mutant, callers: set[str], seconds: dict[str, float]) -> list[str]:
        """In their order. A fixture is called by the first test of a file alone, so the others come last."""
        own = (mutant.file, mutant.function)
        killers = [killer for other, killer in self.killers.items() if (other.file, other.function) == own]
        latest = {killer: place for place, killer in enumerate(killers)}
        files = {name.split("::")[0] for name in callers}
        able = [name for name in seconds if name in callers or name.split("::")[0] in files]
        return sorted(able, key=lambda name: (-latest.get(name, -1), name not in callers, seconds[name]))

    def _profile(self, items: dict[str, Any], writer: Any) -> None:
        """Send which tests call which functions, how long each takes, and which fail without any change."""
        files = {str(PACKAGE / mutant.file): mutant.file for mutant in self.mutants}
        callers, seconds, failing = defaultdict[Any, set[str]](set), dict[str, float](), set[str]()
        self.failed = failing.add
        running = ""

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and (file := files.get(frame.f_code.co_filename)) is not None:
                callers[file, frame.f_code.co_qualname.split(".<locals>")[0]].add(running)

        threading.setprofile(note)
        for item, following in pairwise([*items.values(), None]):
            running, began = item.nodeid, time.process_time()
            sys.setprofile(note)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            sys.setprofile(None)
            seconds[running] = time.process_time() - began
        writer.send((callers, {name: own for name, own in seconds.items() if name not in failing}, failing))

    def _changed(self, mutant: Mutant, items: list[Any], limit: float, writer: Any) -> None:
        """Send the first test that fails with the change, or None."""

        def noticed(name: str) -> None:
            writer.send(name)
            os._exit(0)

        self.failed = noticed
        apply(mutant)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit)
        for item, following in pairwise([*items, None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        writer.send(None)

    def _wait(self) -> None:
        """Until a fork has ended, however it did."""
        for sentinel in wait(list(self.running)):
            mutant, (process, reader) = self.running.pop(sentinel)
            process.join()
            killer: str | None = "time" if process.exitcode == -signal.SIGPROF else "crash"
            with contextlib.suppress(EOFError):
                killer = reader.recv()
            self.killers[mutant] = killer
            fate = "SURVIVED" if killer is None else f"died by {killer}"
            print(f"{len(self.killers)} {mutant.file}:{mutant.line} {mutant.change}: {fate}", flush=True)


def _forked(work: Callable[[Any], None]) -> tuple[Any, Any]:
    """A fork that works, and the end at which what it sends arrives."""
    reader, writer = _FORK.Pipe(duplex=False)

    def quietly() -> None:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        work(writer)

    process = _FORK.Process(target=quietly)
    process.start()
    writer.close()
    return process, reader


def run(mutants: Sequence[Mutant], tests: Sequence[str], workers: int) -> dict[Mutant, str | None]:
    """For each mutant the test that noticed it, None where none did."""
    runs, files = Runs(mutants, workers), sorted({str(PACKAGE / mutant.file) for mutant in mutants})
    options = ("-s", "-p", "no:cacheprovider", "-p", "no:terminal", "-m", "not slow", "-o", "addopts=--doctest-modules")
    code = pytest.main([*options, *tests, *files], plugins=[runs])
    if len(runs.killers) < len(mutants):
        raise SystemExit(f"the tests could not be collected: pytest ended with {code}")
    return runs.killers


def main() -> int:
    """Run them, print survivors and the share that died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--files", default=",".join(FILES), help="some of them, with commas between")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="those that should notice, if not all")
    parser.add_argument("--workers", type=int, default=1, help="mutants side by side")
    given = parser.parse_args()
    drawn = [mutant for file in given.files.split(",") for mutant in mutants(file)]
    killers = run(drawn, given.tests, given.workers)
    died = sum(killer is not None for killer in killers.values())
    print(f"{died} of {len(killers)} died, {100 * died / len(killers):.1f} %")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
