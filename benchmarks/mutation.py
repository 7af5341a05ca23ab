"""Change one operator or constant of the paper's code at a time, and see whether its quick tests notice.

``python -m benchmarks.mutation --sample 40 --seed 0`` draws so many from all files; without ``--sample`` it runs all.
The checkout is not touched: each mutant stands in a copy of ``src``. What survives is printed with its line.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/fedrecplus")
_RULES = ("tests/contracts/test_formulas.py", "tests/rounds/test_by_hand.py", "tests/config/test_presets.py")
TESTED: dict[str, tuple[str, ...]] = {
    "parts/model/mf.py": (*_RULES, "tests/rounds/test_client.py"),
    "parts/pseudo_items/similar.py": ("tests/contracts/test_pseudo_items.py", *_RULES),
    "parts/virtual_ratings/nearest.py": ("tests/contracts/test_virtual_ratings.py", *_RULES),
    "parts/aggregation/wasserstein.py": ("tests/contracts/test_wasserstein.py", *_RULES),
    "rounds/client.py": ("tests/rounds", *_RULES),
    "rounds/server.py": ("tests/rounds", *_RULES),
    **{
        f"experiments/theory/{name}.py": ("tests/theory",)
        for name in ("constants", "corollary", "gradients", "lemmas", "theorem")
    },
}
"""file → the tests that should notice"""
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
LIMIT = 400.0
"""seconds for a mutant's tests; one that hangs has been noticed"""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    change: str
    source: str


def mutants(file: str) -> Iterator[Mutant]:
    """Every change of an operator or a number within functions, one at a time."""
    tree = ast.parse((ROOT / PACKAGE / file).read_text(encoding="utf-8"))
    sites = [node for function in _functions(tree) for node in ast.walk(function)]
    places = [place for place, node in enumerate(sites) if _changed(node) is not None]
    for place in places:
        other = copy.deepcopy(tree)
        node = [node for function in _functions(other) for node in ast.walk(function)][place]
        before = ast.unparse(node)
        _apply(node)
        yield Mutant(file, getattr(node, "lineno", 0), f"{before} → {ast.unparse(node)}", ast.unparse(other))


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """Outermost functions and methods; settings' ranges and module constants are no code that runs."""
    inner = [node for top in tree.body if isinstance(top, ast.ClassDef) for node in top.body]
    return [node for node in [*tree.body, *inner] if isinstance(node, ast.FunctionDef)]


def _changed(node: ast.AST) -> object:
    """What stands in the place of an operator or a number; None where nothing is changed."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        return _OPERATORS.get(type(node.op))
    if isinstance(node, ast.Compare):
        return _OPERATORS.get(type(node.ops[0]))
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return node.value + 1
    return None


def _apply(node: ast.AST) -> None:
    other = _changed(node)
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        node.op = other()  # type: ignore[operator]
    elif isinstance(node, ast.Compare):
        node.ops[0] = other()  # type: ignore[operator]
    elif isinstance(node, ast.Constant):
        node.value = other  # type: ignore[assignment]


def survives(mutant: Mutant, copy_of_source: Path) -> bool:
    """Whether the file's tests are green with the change."""
    place = copy_of_source / "fedrecplus" / mutant.file
    original = place.read_text(encoding="utf-8")
    place.write_text(mutant.source, encoding="utf-8")
    command = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TESTED[mutant.file])
    try:
        environment = {**os.environ, "PYTHONPATH": str(copy_of_source), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        place.write_text(original, encoding="utf-8")


def main() -> int:
    """Run them, print survivors and the share that died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", default=",".join(TESTED), help="some of them, with commas between")
    parser.add_argument("--workers", type=int, default=1, help="mutants side by side")
    given = parser.parse_args()
    drawn = [mutant for file in given.files.split(",") for mutant in mutants(file)]
    count = len(drawn)
    if given.sample is not None:
        drawn = random.Random(given.seed).sample(drawn, min(given.sample, count))
    unchanged = [Mutant(file, 0, "", (ROOT / PACKAGE / file).read_text(encoding="utf-8")) for file in files_of(drawn)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.workers) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(given.workers):
            place, left_out = Path(folder) / str(number), shutil.ignore_patterns("__pycache__")
            copies.put(Path(shutil.copytree(ROOT / "src", place, ignore=left_out)))

        def outcome(mutant: Mutant) -> bool:
            copy_of_source = copies.get()
            try:
                return survives(mutant, copy_of_source)
            finally:
                copies.put(copy_of_source)

        for mutant, green in zip(unchanged, pool.map(outcome, unchanged), strict=True):
            if not green:  # they would notice everything
                raise SystemExit(f"the tests of {mutant.file} fail or take {LIMIT:g} s without any change")
        alive = 0
        for number, (mutant, green) in enumerate(zip(drawn, pool.map(outcome, drawn), strict=True), start=1):
            alive += green
            fate = "SURVIVED" if green else "died"
            print(f"{number}/{len(drawn)} {fate} {mutant.file}:{mutant.line} {mutant.change}", flush=True)
    print(f"{len(drawn) - alive} of {len(drawn)} died ({count} mutants in all)")
    return 0


def files_of(drawn: list[Mutant]) -> list[str]:
    """The files that are changed, once each."""
    return sorted({mutant.file for mutant in drawn})


if __name__ == "__main__":
    raise SystemExit(main())
