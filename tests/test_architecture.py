"""The house stands as docs/architecture.md draws it: imports point down, and each equation has one home."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import fedrecplus
from fedrecplus.parts import choices, part

HOUSE = Path(fedrecplus.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
PARTS = ("pseudo_items", "encoders", "virtual_ratings", "aggregation", "server_steps")
FLOORS = {
    "errors": 0, "randomness": 0, "protocol": 0, "device": 0, "similarity": 0, "files": 0, "workers": 0,
    "provenance": 0, "markdown": 0,
    "data": 1, "parts": 1,
    "config": 2,
    "model": 3,
    "gradients": 4,
    **dict.fromkeys(PARTS, 5),
    "rounds": 6,
    "simulation": 7,
    "fast": 8,
    "training": 9,
    "experiments": 10, "audit": 10, "deploy": 10, "theory": 10,
    "__init__": 11, "report": 11,
    "cli": 12,
    "__main__": 13,
}  # fmt: skip
LINES_OF_ALGORITHM_1 = 11
FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "base", "manager", "misc"}
NOT_FOR_ATTACKS = {
    "device", "data", "rounds", "simulation", "fast", "training", "experiments", "deploy", "theory", "report",
}  # fmt: skip
"""what knows a client's ratings, its U or its secret: a server has none of it"""

FILES = sorted(HOUSE.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


def path_of(file: Path) -> str:
    return file.relative_to(HOUSE).as_posix()


def room_of(file: Path) -> str:
    return file.relative_to(HOUSE).with_suffix("").parts[0]


def imported_rooms(tree: ast.Module) -> dict[str, int]:
    """Room → line of its first import, at the top of the file, inside a function, or by name through importlib."""
    names: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the whole name of what is imported"
            names += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names += [(str(a.value), node.lineno) for a in node.args if isinstance(a, ast.Constant)]
    rooms: dict[str, int] = {}
    for name, line in names:
        if name.split(".")[0] == "fedrecplus" and name != "fedrecplus.__version__":
            inner = name.split(".")[1]
            rooms.setdefault(inner if inner in FLOORS or (HOUSE / inner).is_dir() else "__init__", line)
    return rooms


def docstrings(tree: ast.Module) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, kinds))
    return [text for text in found if text]


def cited_equations(text: str) -> set[int]:
    """Numbers after ``Paper: Eq.``, up to the end of the sentence: what the code of this docstring is the home of."""
    numbers: set[int] = set()
    for sentence in re.findall(r"Paper: ((?:.(?!After:|Ours:|Deviation:))*)", text):
        for list_of_numbers in re.findall(r"Eq\. (\(\d+\)(?:, \(\d+\))*)", sentence):
            numbers |= {int(number) for number in re.findall(r"\d+", list_of_numbers)}
    return numbers


@pytest.mark.parametrize("file", FILES, ids=path_of)
def test_imports_point_down(file: Path) -> None:
    here = room_of(file)
    for room, line in imported_rooms(TREES[file]).items():
        if room != here:
            assert FLOORS[room] < FLOORS[here] or FLOORS[here] == 0, (
                f"{path_of(file)}, line {line}: {here} (floor {FLOORS[here]}) imports {room} (floor {FLOORS[room]})"
            )


def test_every_room_has_a_floor() -> None:
    assert {room_of(file) for file in FILES} <= set(FLOORS), "a new room needs a floor, here and in the document"


def test_the_document_has_the_same_floors() -> None:
    table = re.findall(r"^\| (\d+) \| ((?:`[^`]+`(?:, )?)+) \|", (DOCS / "architecture.md").read_text("utf-8"), re.M)
    drawn = {name: int(floor) for floor, rooms in table for name in re.findall(r"`(\w+)(?:/|\.py)`", rooms)}
    assert drawn == FLOORS


def test_rooms_of_parts_do_not_know_each_other() -> None:
    for file in FILES:
        if room_of(file) in PARTS:
            assert set(imported_rooms(TREES[file])) & (set(PARTS) - {room_of(file)}) == set(), path_of(file)


def test_no_file_has_a_name_that_says_nothing() -> None:
    for file in FILES:
        words = set(re.split(r"[_/.]", path_of(file)))
        assert words & FORBIDDEN_NAMES == set(), path_of(file)


def test_attacks_know_only_what_a_server_sees() -> None:
    attacks = [file for file in FILES if path_of(file).startswith("audit/attacks/")]
    assert attacks
    for file in attacks:
        assert set(imported_rooms(TREES[file])) & NOT_FOR_ATTACKS == set(), path_of(file)


@pytest.mark.parametrize(("room", "name"), [(room, name) for room in PARTS for name in choices(room)])
def test_every_public_function_of_a_part_says_where_it_comes_from(room: str, name: str) -> None:
    module = part(room, name)
    functions = own_public_functions(module)
    assert functions
    for function in functions:
        last_paragraph = (inspect.getdoc(function) or "").split("\n\n")[-1]
        assert re.search(r"\b(Paper|After|Ours): \S", last_paragraph), (
            f"{module.__name__}.{function.__name__}: end the docstring with Paper: …, After: … or Ours: …"
        )


def own_public_functions(module: ModuleType) -> list:
    functions = inspect.getmembers(module, inspect.isfunction)
    return [function for name, function in functions if function.__module__ == module.__name__ and name[0] != "_"]


def test_equations_have_one_home() -> None:
    homes: dict[int, set[str]] = {}
    for file in FILES:
        for text in docstrings(TREES[file]):
            for number in cited_equations(text):
                homes.setdefault(number, set()).add(path_of(file))
    assert {number: files for number, files in homes.items() if len(files) > 1} == {}
    assert homes[1] == {"model.py"}
    assert homes[3] == homes[4] == {"gradients.py"}
    assert homes[9] == {"similarity.py"}
    assert homes[18] == homes[19] == homes[23] == {"aggregation/wasserstein.py"}


def test_equations_are_cited_by_numbers_that_the_notation_explains() -> None:
    table = (DOCS / "notation.md").read_text("utf-8").split("## Equation numbers")[1].split("\n## ")[0]
    known: set[int] = set()
    for first, last in re.findall(r"^\| \((\d+)\)(?: to \((\d+)\))? \|", table, re.M):
        known |= set(range(int(first), int(last or first) + 1))
    for file in FILES:
        for text in docstrings(TREES[file]):
            assert not re.search(r"Eq\. \((?!\d+\))", text), f"{path_of(file)} cites an equation without its number"
            assert cited_equations(text) <= known, path_of(file)


def test_cited_lines_of_algorithm_1_exist() -> None:
    for file in FILES:
        for text in docstrings(TREES[file]):
            for lines in re.findall(r"Algorithm 1, lines? ([\d–]+)", text):
                first, last = (int(number) for number in (lines.split("–") * 2)[:2])
                assert 1 <= first <= last <= LINES_OF_ALGORITHM_1, path_of(file)


def test_a_prediction_is_computed_by_one_function() -> None:
    """``V @ U[:-1]`` is the sign of a prediction written out again; fast kernels have loops instead."""
    writers = {path_of(file) for file in FILES if re.search(r"V\S* @ U", file.read_text("utf-8"))}
    assert writers == {"model.py"}


@pytest.mark.parametrize("file", [file for file in FILES if room_of(file) == "fast"], ids=path_of)
def test_fast_kernels_point_to_the_reference_instead_of_the_paper(file: Path) -> None:
    text = "\n".join(docstrings(TREES[file]))
    assert "Paper:" not in text
    if "@kernel" in file.read_text("utf-8") and file.name != "compiling.py":
        named = re.findall(r"``([a-z_/.]+)``", text)
        assert any(_exists(name) for name in named), f"{path_of(file)} names no file or function of the reference"


def _exists(name: str) -> bool:
    if "/" in name:
        return (HOUSE / name).exists()
    room, _, attribute = name.rpartition(".")
    return room in FLOORS and hasattr(importlib.import_module(f"fedrecplus.{room}"), attribute)
