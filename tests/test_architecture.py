"""The package is built as docs/architecture.md says: imports point down, parts explain themselves, names say something.

One test per rule; each failure names the file.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fedrecplus
from fedrecplus.parts import KINDS, built_in, part_class

ROOT = Path(fedrecplus.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
MOST_PACKAGES = 13
LINES_OF_ALGORITHM_1 = 11
FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "base", "manager", "misc"}
WITH_ATTACKER = ("pseudo_items", "virtual_ratings")
"""kinds whose parts say what an attacker may assume of them"""
WITH_ORIGIN = ("pseudo_items", "virtual_ratings", "encoder", "aggregation", "server_optimizer")
"""kinds whose functions are somebody's formula"""

TRACED = """
import builtins, importlib, json, sys
seen = set()
plain_import, plain_import_module = builtins.__import__, importlib.import_module

def note(importer, imported):
    if str(importer).startswith("fedrecplus") and imported.startswith("fedrecplus"):
        seen.add((importer, imported))

def traced_import(name, globals=None, locals=None, fromlist=(), level=0):
    module = plain_import(name, globals, locals, fromlist, level)
    importer = (globals or {}).get("__name__", "")
    if name != "fedrecplus":
        note(importer, name)
    for each in fromlist or ():
        if f"{name}.{each}" in sys.modules or (name == "fedrecplus" and each != "__version__"):
            note(importer, f"{name}.{each}")
    return module

def traced_import_module(name, package=None):
    note(sys._getframe(1).f_globals.get("__name__", ""), name)
    return plain_import_module(name, package)

builtins.__import__, importlib.import_module = traced_import, traced_import_module
exec(sys.argv[1])
print(json.dumps(sorted(seen)))
"""
SMALL = """
import fedrecplus as fr
training, test = fr.split(fr.load("synthetic:clients=30,items=40,ratings_per_client=8"), fold=0)
"""
RUNNING = {
    "training": SMALL
    + """
folder = sys.argv[2]
for number, name in enumerate(("fedrec+", "fedrec++", "pmf", "fedrec+private")):
    config = fr.assign(fr.preset(name), ["server.rounds=2"])
    fr.train(training, test, config, out=f"{folder}/{number}")
    fr.train(training, test, config, out=f"{folder}/{number}", resume=True)
    fr.Recommender.load(f"{folder}/{number}").recommend(training.client_ids[0], 3)
fr.train(training, None, fr.assign(fr.preset("fedrec-hf"), ["server.rounds=2", "engine=reference"]))
""",
    "audit": SMALL + 'fr.run_audit(training, "fedrec", users=3, rounds=2, workers=1)',
    "cuda": SMALL + 'fr.train(training, test, fr.assign(fr.preset("fedmf"), ["server.rounds=1", "engine=cuda"]))',
    "ray": SMALL + 'fr.train(training, test, fr.assign(fr.preset("fedmf"), ["server.rounds=1", "engine=ray"]))',
    "deploy": """
import pkgutil, fedrecplus.deploy
for module in pkgutil.walk_packages(fedrecplus.deploy.__path__, "fedrecplus.deploy."):
    if not module.name.endswith("__main__"):
        plain_import_module(module.name)
""",
}
"""programs that use a package, and bring what it imports by a name that is put together at run time"""
EXTRAS = {"cuda": "triton", "ray": "ray", "deploy": "sqlalchemy"}
BROUGHT = {
    "training": ("parts.pseudo_items", "parts.pseudo_items._kernels"),
    "audit": ("audit.", "audit.attacks."),
    "cuda": ("engines.interface", "engines.cuda"),
    "ray": ("engines.interface", "engines.ray"),
    "deploy": ("deploy.http", "deploy.wire"),
}
"""an import that each of them must show, or the tracing saw nothing"""


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Path within the package → its syntax tree."""
    files = sorted(ROOT.rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def top_of(path: str) -> str:
    """The package, or the module outside of any, that a file belongs to."""
    return path.removesuffix(".py").split("/")[0]


@functools.cache
def layers() -> dict[str, int]:
    """Package or module → its layer in the document."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ((?:`\w+`(?:, )?)+) \|", text, re.M)
    return {name: int(layer) for layer, names in rows for name in re.findall(r"`(\w+)`", names)}


def may_import(importer: str, imported: str) -> bool:
    """Lower layers, oneself, and in the lowest layer each other."""
    above, below = layers().get(importer, 99), layers().get(imported, 0)
    return importer == imported or below < above or above == below == 0


@functools.cache
def imports() -> dict[str, dict[str, int]]:
    """File → what it imports of the package, by its whole name → the line, at the top or inside a function."""
    found: dict[str, dict[str, int]] = {}
    for path, tree in trees().items():
        names: list[tuple[str, int]] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}, line {node.lineno}: write the whole name of what is imported"
                names += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
        found[path] = {name: line for name, line in names if name.split(".")[0] == "fedrecplus"}
    return found


def target_of(name: str) -> str:
    """The package or module that an imported name is in; the package's own front door is ``__init__``."""
    inner = name.split(".")[1] if "." in name else "__init__"
    return inner if (ROOT / inner).is_dir() or (ROOT / f"{inner}.py").exists() else "__init__"


def docstrings(path: str) -> list[str]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (ast.get_docstring(node) for node in ast.walk(trees()[path]) if isinstance(node, kinds))
    return [text for text in found if text]


def cited_equations(text: str) -> set[int]:
    """Numbers after ``Paper: Eq.``, up to the end of the sentence: what the code of this docstring is the home of."""
    numbers: set[int] = set()
    for sentence in re.findall(r"Paper: ((?:.(?!After:|Ours:|Deviation:))*)", text):
        for list_of_numbers in re.findall(r"Eq\. (\(\d+\)(?:, \(\d+\))*)", sentence):
            numbers |= {int(number) for number in re.findall(r"\d+", list_of_numbers)}
    return numbers


def test_every_package_and_module_has_a_layer_in_the_document_and_they_are_few() -> None:
    there = {top_of(file.relative_to(ROOT).as_posix()) for file in ROOT.rglob("*.py")}
    assert there <= set(layers()), "a new package needs a row in docs/architecture.md"
    packages = {name for name in there if (ROOT / name).is_dir()}
    assert len(packages) <= MOST_PACKAGES


def test_imports_point_down() -> None:
    wrong = [
        f"{path}, line {line}: {top_of(path)} imports {name}"
        for path, names in imports().items()
        for name, line in names.items()
        if name != "fedrecplus.__version__" and not may_import(top_of(path), target_of(name))
    ]
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    """Nor by imports inside of functions, which hide a circle from Python and from nobody else."""
    names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in trees()}
    known = {f"fedrecplus.{name}" for name in names.values()}
    graph: dict[str, set[str]] = {}
    for path, tree in trees().items():
        skipped = set(map(id, for_types_alone(tree)))
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ImportFrom)
                and str(node.module).startswith("fedrecplus.")
                and id(node) not in skipped
            ):
                targets = {f"{node.module}.{alias.name}" for alias in node.names}
                modules = {target if target in known else str(node.module) for target in targets}
                graph.setdefault(f"fedrecplus.{names[path]}", set()).update(modules)
    for module, others in graph.items():
        others.discard(module)
    list(graphlib.TopologicalSorter(graph).static_order())  # a circle is an error that names it


def for_types_alone(tree: ast.Module) -> list[ast.AST]:
    """What stands under ``if TYPE_CHECKING``: no program runs it."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    return [inner for block in blocks for line in block.body for inner in ast.walk(line)]


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "ray")) for name in RUNNING])
def test_imports_of_a_running_program_point_down(name: str, tmp_path: Path) -> None:
    """Also those by a name that is put together at run time."""
    pytest.importorskip(EXTRAS.get(name, "fedrecplus"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent), "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", TRACED, RUNNING[name], str(tmp_path)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    seen = [(importer, imported) for importer, imported in json.loads(done.stdout.splitlines()[-1])]
    first, second = (f"fedrecplus.{prefix}" for prefix in BROUGHT[name])
    assert any(one.startswith(first) and other.startswith(second) for one, other in seen)
    # attacks are parts, too, which the registry of parts imports for the audit by their names
    by_name = {pair for pair in seen if pair[0].startswith("fedrecplus.parts") and "audit.attacks" in pair[1]}
    tops = {(target_of(importer), target_of(imported)) for importer, imported in {*seen} - by_name}
    on_behalf = {"cli", "lazy"}  # commands by their names; names by a package's door, which the tests above read
    assert [(one, other) for one, other in tops if one not in on_behalf and not may_import(one, other)] == []


def test_no_file_has_a_name_that_says_nothing() -> None:
    assert [path for path in trees() if set(re.split(r"[_/.]", path)) & FORBIDDEN_NAMES] == []


def door_of(name: str) -> str:
    """The innermost package that an imported name is in: its ``__init__`` is the door."""
    words = name.split(".")[:-1]
    while not ROOT.joinpath(*words[1:], "__init__.py").exists():
        words.pop()
    return ".".join(words)


def offered_by(door: str) -> set[str]:
    """What a door defines or imports, also for those who read types alone."""
    tree = trees()["/".join([*door.split(".")[1:], "__init__.py"])]
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return names | {alias.name for node in imported for alias in node.names}


def is_part(name: str) -> bool:
    """Whether a name is a part's file or in one: what is made for one part alone names its file, which is its door."""
    words = name.split(".")
    return len(words) > 3 and words[1] == "parts" and words[2] in KINDS and words[3] in built_in(KINDS[words[2]])


def test_packages_import_each_other_through_their_doors() -> None:
    wrong = []
    for path, names in imports().items():
        for name, line in names.items():
            package = target_of(name)
            if path == "__init__.py" or package == top_of(path) or not (ROOT / package).is_dir() or is_part(name):
                continue
            door, last = door_of(name), name.split(".")[-1]
            is_package = ROOT.joinpath(*name.split(".")[1:], "__init__.py").exists()
            if name != f"{door}.{last}" or not (is_package or last in offered_by(door)):
                wrong.append(f"{path}, line {line}: {name}; let {door}/__init__ offer {last}, and import it from there")
    assert wrong == []


def test_what_a_door_imports_lazily_is_not_also_a_module() -> None:
    """Or whether one gets the name or the module would depend on what was imported before."""
    wrong = []
    for path, tree in trees().items():
        if path.endswith("__init__.py"):
            own = f"fedrecplus.{path.removesuffix('/__init__.py').replace('/', '.')}"
            lazily = [node for node in for_types_alone(tree) if isinstance(node, ast.ImportFrom) and node.module != own]
            modules = {file.stem for file in (ROOT / path).parent.iterdir() if file.suffix == ".py" or file.is_dir()}
            wrong += [f"{path}: {alias.name}" for node in lazily for alias in node.names if alias.name in modules]
    assert wrong == []


def test_files_with_an_underscore_are_imported_by_their_own_package_alone() -> None:
    wrong = []
    for path, names in imports().items():
        for name, line in names.items():
            folders = name.split(".")[1:]
            private = next((place for place, word in enumerate(folders) if re.match(r"_[a-z]", word)), None)
            if private is not None and (ROOT.joinpath(*folders[: private + 1]).with_suffix(".py")).exists():
                own = "/".join(folders[:private])
                if not path.startswith(f"{own}/"):
                    wrong.append(f"{path}, line {line}: {name}")
    assert wrong == []


def test_a_class_name_means_one_class() -> None:
    homes: dict[str, list[str]] = {}
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name != "Settings" and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_every_part_says_what_an_attacker_may_assume_where_its_kind_wants_that() -> None:
    silent = [
        f"{kind}.{rule}"
        for kind in WITH_ATTACKER
        for rule in built_in(KINDS[kind])
        if rule != "none" and part_class(KINDS[kind], rule).ATTACKER is None
    ]
    assert silent == []


def test_functions_of_parts_say_where_they_come_from() -> None:
    wrong = []
    for kind in WITH_ORIGIN:
        for rule in built_in(KINDS[kind]):
            chosen = part_class(KINDS[kind], rule)
            for name in {name for base in chosen.__mro__ for name in getattr(base, "__abstractmethods__", ())}:
                if inspect.isfunction(function := getattr(chosen, name)):
                    last = (function.__doc__ or "").split("\n\n")[-1]
                    if not re.search(r"\b(Paper|After|Ours): \S", last):
                        wrong.append(f"{kind}.{rule}.{name}: end the docstring with Paper: …, After: … or Ours: …")
    assert wrong == []


def test_equations_have_one_home_and_numbers_that_the_notation_explains() -> None:
    table = (DOCS / "notation.md").read_text("utf-8").split("## Equation numbers")[1].split("\n## ")[0]
    known: set[int] = set()
    for first, last in re.findall(r"^\| \((\d+)\)(?: to \((\d+)\))? \|", table, re.M):
        known |= set(range(int(first), int(last or first) + 1))
    homes: dict[int, set[str]] = {}
    for path in trees():
        for text in docstrings(path):
            assert not re.search(r"Eq\. \((?!\d+\))", text), f"{path} cites an equation without its number"
            for number in cited_equations(text):
                homes.setdefault(number, set()).add(path)
    assert {number: paths for number, paths in homes.items() if len(paths) > 1} == {}
    assert set(homes) <= known
    assert {1, 3, 4, 9, 18, 19, 23} <= set(homes)


def test_cited_lines_of_algorithm_1_exist() -> None:
    for path in trees():
        for text in docstrings(path):
            for lines in re.findall(r"Algorithm 1, lines? ([\d–]+)", text):
                first, last = (int(number) for number in (lines.split("–") * 2)[:2])
                assert 1 <= first <= last <= LINES_OF_ALGORITHM_1, path


def test_kernels_point_to_the_readable_form_instead_of_the_paper() -> None:
    wrong = []
    for path in (path for path in trees() if path.startswith("engines/fast/") or "_kernels" in path):
        text = "\n".join(docstrings(path))
        named = re.findall(r"``([a-z_/]+\.py)``", text)
        kernels = "@kernel" in (ROOT / path).read_text(encoding="utf-8") and not path.endswith("compiling.py")
        if "Paper:" in text or (kernels and not any((ROOT / name).exists() for name in named)):
            wrong.append(path)
    assert wrong == []


def test_nothing_in_the_package_is_of_one_machine() -> None:
    pattern = re.compile(r"/(?:home|root|work|Users)/\w|localhost:\d|\.local/|C:\\\\")
    assert [path for path in trees() if pattern.search((ROOT / path).read_text(encoding="utf-8"))] == []
