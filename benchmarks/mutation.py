"""Change one operator, comparison or constant of the paper's code at a time, and see whether its quick tests notice.

``python -m benchmarks.mutation --json runs/mutants.json`` runs all mutants; ``--sample 40`` draws so many. No file is
touched: tests are collected once, and every mutant is a fork in which one function has other code. It runs the tests
that call this function, the shortest first, until one fails. What survives is printed; docs/mutants.md says why.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/fedrecplus")
_PARTS = (
    "tests/contracts", "tests/rounds", "tests/config/test_presets.py", "tests/engines/test_plain.py",
    "tests/engines/test_fast_equals_reference.py", "tests/privacy/test_rounds.py", "tests/privacy/test_noise.py",
)  # fmt: skip
_THEORY = ("tests/theory",)
TESTED: dict[str, tuple[str, ...]] = {
    "parts/model/mf.py": _PARTS,
    "parts/pseudo_items/similar.py": _PARTS,
    "parts/virtual_ratings/nearest.py": _PARTS,
    "parts/similarity.py": _PARTS,
    "parts/aggregation/wasserstein.py": _PARTS,
    "parts/aggregation/_covariance.py": _PARTS,
    **{f"rounds/{name}.py": _PARTS for name in ("client", "extension", "release", "server")},
    **{
        f"experiments/theory/{name}.py": _THEORY
        for name in ("constants", "corollary", "gradients", "lemmas", "study", "theorem")
    },
}
"""file → the tests that should notice, and the file's own doctests"""
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd,
}  # fmt: skip
_EDGES: dict[type[ast.AST], type[ast.AST]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


_SILENT = ("strict", "copy")
"""arguments of ``zip`` and ``astype``"""


@dataclass(frozen=True)
class Mutant:
    """One change of one function."""

    file: str
    function: str
    """its qualified name"""
    line: int
    change: str
    source: str
    """the whole file with the change"""


def mutants(file: str) -> Iterator[Mutant]:
    """Every change of an operator, a comparison or a number within functions, one at a time."""
    tree = ast.parse((ROOT / PACKAGE / file).read_text(encoding="utf-8"))
    for name, place, ways in (site for own in _functions(tree) for site in _sites(*own)):
        for way in range(ways):
            other = copy.deepcopy(tree)
            node = list(_inside(dict(_functions(other))[name]))[place]
            before = ast.unparse(node)
            _apply(node, way)
            yield Mutant(file, name, getattr(node, "lineno", 0), f"{before} → {ast.unparse(node)}", ast.unparse(other))


def _functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    """Outermost functions and methods; settings' ranges and module constants are no code that runs."""
    found = [(node.name, node) for node in tree.body if isinstance(node, ast.FunctionDef)]
    for top in tree.body:
        if isinstance(top, ast.ClassDef):
            found += [(f"{top.name}.{node.name}", node) for node in top.body if isinstance(node, ast.FunctionDef)]
    return found


def _inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Body and defaults, without annotations and decorators."""
    defaults = [node for node in (*function.args.defaults, *function.args.kw_defaults) if node is not None]
    for top in (*function.body, *defaults):
        # whether lengths are compared and whether numbers are copied changes nothing of what comes out
        silent = {id(own.value) for own in ast.walk(top) if isinstance(own, ast.keyword) and own.arg in _SILENT}
        yield from (node for node in ast.walk(top) if id(node) not in silent)


def _sites(name: str, function: ast.FunctionDef) -> Iterator[tuple[str, int, int]]:
    for place, node in enumerate(_inside(function)):
        if ways := _ways(node):
            yield name, place, len(ways)


def _ways(node: ast.AST) -> list[object]:
    """What may stand in the place of an operator or a constant; a comparison loses or gains its edge, too."""
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign | ast.UnaryOp):
        ways = [_OPERATORS.get(type(node.op))]
    elif isinstance(node, ast.Compare):
        ways = [table.get(type(node.ops[0])) for table in (_OPERATORS, _EDGES)]
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [not node.value]
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [node.value + 1]
    else:
        return []
    return [way for way in ways if way is not None]


def _apply(node: ast.AST, way: int) -> None:
    other = _ways(node)[way]
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign | ast.UnaryOp):
        node.op = other()  # type: ignore[operator]
    elif isinstance(node, ast.Compare):
        node.ops[0] = other()  # type: ignore[operator]
    elif isinstance(node, ast.Constant):
        node.value = other  # type: ignore[assignment]


def main() -> int:
    """Run them, print survivors and the share that died."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random; all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", default=",".join(TESTED), help="some of them, with commas between")
    parser.add_argument("--workers", type=int, default=1, help="mutants side by side")
    parser.add_argument("--json", type=Path, help="write what became of each mutant here")
    given = parser.parse_args()
    drawn = [mutant for file in given.files.split(",") for mutant in mutants(file)]
    if given.sample is not None:
        drawn = random.Random(given.seed).sample(drawn, min(given.sample, len(drawn)))
    from benchmarks.mutation_runs import run_mutants  # here: it loads pytest

    fates: list[dict[str, object]] = []
    for tests in dict.fromkeys(TESTED[mutant.file] for mutant in drawn):
        group = [mutant for mutant in drawn if TESTED[mutant.file] == tests]
        for mutant, killer in run_mutants(group, tests, given.workers):
            fates.append({**asdict(mutant), "killer": killer})
            del fates[-1]["source"]
            fate = "SURVIVED" if killer is None else f"died by {killer}"
            print(f"{len(fates)}/{len(drawn)} {mutant.file}:{mutant.line} {mutant.change}: {fate}", flush=True)
            if given.json is not None:
                given.json.write_text(json.dumps(fates, indent=1, ensure_ascii=False), encoding="utf-8")
    _report(fates)
    return 0


def _report(fates: list[dict[str, object]]) -> None:
    """A line per file, and one for all."""
    total = Counter(fate["file"] for fate in fates)
    alive = Counter(fate["file"] for fate in fates if fate["killer"] is None)
    for file, count in total.items():
        print(f"{file}: {count - alive[file]} of {count} died")
    died = len(fates) - alive.total()
    print(f"{died} of {len(fates)} died, {100 * died / max(len(fates), 1):.1f} %")


if __name__ == "__main__":
    raise SystemExit(main())
