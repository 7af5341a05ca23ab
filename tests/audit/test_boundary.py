"""Nothing that knows the truth can be reached from an attack by following imports."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import fedrecplus

HOUSE = Path(fedrecplus.__file__).parent
ATTACKS = sorted((HOUSE / "audit" / "attacks").glob("*.py"))
KNOWS_THE_TRUTH = (
    "fedrecplus.data",
    "fedrecplus.engines",
    "fedrecplus.training",
    "fedrecplus.experiments",
    "fedrecplus.deploy",
    "fedrecplus.audit.recording",
    "fedrecplus.audit.contributions",
    "fedrecplus.audit.truth",
    "fedrecplus.audit.scoring",
    "fedrecplus.audit.audit",
)
HARMLESS = {"fedrecplus.data.scale"}
"""the ends of the standard scale; a name that a front door hands on counts as its home's"""
CLIENTS_PROGRAM = ("fedrecplus.device", "fedrecplus.rounds")
"""run on made-up clients: ``audit/shadow_clients.py`` is the one way to it, since methods of parts name the type of a
device and nobody else has one to give them"""
RUN_IT = {"shadow", "inversion", "constraints", "statistics"}
"""the last two add what made-up clients teach to their own evidence"""


def file_of(module: str) -> Path | None:
    place = HOUSE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


@functools.cache
def homes(door: Path) -> dict[str, str]:
    """Name → the module that it is from, for all names that a front door hands on."""
    lines = [node for node in ast.walk(ast.parse(door.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: f"{line.module}" for line in lines for alias in line.names}


def home_of(module: str, name: str) -> str:
    """The module that ``from module import name`` asks for: ``module.name``, or what a front door has the name from."""
    inner = file_of(f"{module}.{name}")
    if inner is not None:
        return f"{module}.{name}"
    door = file_of(module)
    behind = homes(door).get(name) if door is not None and door.name == "__init__.py" else None
    return module if behind is None else home_of(behind, name)


def imports_of(path: Path) -> set[str]:
    """Modules that a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {home_of(node.module, alias.name) for alias in node.names}
    return {name for name in found if name.split(".")[0] == "fedrecplus"}


def reachable(path: Path) -> dict[str, set[Path]]:
    """Module → the files that import it, for all that a file imports, directly or not."""
    found: dict[str, set[Path]] = {}
    waiting = [path]
    while waiting:
        here = waiting.pop()
        for module in imports_of(here):
            inner = file_of(module)
            if module not in found and inner is not None:
                waiting.append(inner)
            found.setdefault(module, set()).add(here)
    return found


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_an_attack_can_reach_nothing_that_knows_the_truth(attack: Path) -> None:
    for module, by in reachable(attack).items():
        knows = module.startswith(KNOWS_THE_TRUTH) and module not in HARMLESS
        assert not knows, f"{attack.name} reaches {module} by way of {sorted(path.name for path in by)}"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_the_clients_program_is_run_by_made_up_clients_alone(attack: Path) -> None:
    ways = {path for module, by in reachable(attack).items() if module.startswith(CLIENTS_PROGRAM) for path in by}
    outside = {
        path.name for path in ways if not path.is_relative_to(HOUSE / "parts") and path.parent != HOUSE / "rounds"
    }
    assert outside == ({"shadow_clients.py"} if attack.stem in RUN_IT else set())


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_attacks_import_by_name_only(attack: Path) -> None:
    """An import that is put together at run time could not be checked."""
    text = attack.read_text(encoding="utf-8")
    for word in ("importlib", "__import__", "eval(", "exec(", "sys.modules", "open(", "pickle"):
        assert word not in text


def looks_up_parts(path: Path) -> bool:
    """Whether a file reaches parts by a name of its own instead of those that the public config names."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = {node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "") for node in calls}
    return bool(names & {"choose", "part_class", "choices"})


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_attacks_ask_the_parts_of_the_config_and_never_name_a_rule(attack: Path) -> None:
    assert not looks_up_parts(attack)
    assert ".rule" not in attack.read_text(encoding="utf-8")


def test_cheating_would_be_found(tmp_path: Path) -> None:
    cheat = tmp_path / "cheat.py"
    cheat.write_text("def attack(t, c):\n    from fedrecplus.engines import prepare\n    return Model.choose('mf')\n")
    assert any(module.startswith(KNOWS_THE_TRUTH) for module in reachable(cheat))
    assert looks_up_parts(cheat)
