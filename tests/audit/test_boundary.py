"""Nothing that knows the truth can be reached from an attack by following imports."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fedrecplus

HOUSE = Path(fedrecplus.__file__).parent
ATTACKS = sorted((HOUSE / "audit" / "attacks").glob("*.py"))
KNOWS_THE_TRUTH = (
    "fedrecplus.data",
    "fedrecplus.simulation",
    "fedrecplus.fast",
    "fedrecplus.training",
    "fedrecplus.experiments",
    "fedrecplus.deploy",
    "fedrecplus.rounds.server",
    "fedrecplus.audit.recording",
    "fedrecplus.audit.scoring",
    "fedrecplus.audit.audit",
    "fedrecplus.audit.running",
)
HARMLESS = {"fedrecplus.data.scale"}
"""the ends of the standard scale"""
ONLY_FOR_SHADOWS = ("fedrecplus.device", "fedrecplus.rounds", "fedrecplus.virtual_ratings", "fedrecplus.pseudo_items")
"""the client's program, run on made-up clients: ``audit/shadow_clients.py`` is the one way to it"""


def file_of(module: str) -> Path | None:
    place = HOUSE.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imports_of(path: Path) -> set[str]:
    """Modules that a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if file_of(name) else node.module for name in names}
    return {name for name in found if name.split(".")[0] == "fedrecplus"}


def reachable(path: Path) -> dict[str, str]:
    """Module → the file that imports it, for all that a file imports, directly or not."""
    found: dict[str, str] = {}
    waiting = [path]
    while waiting:
        here = waiting.pop()
        for module in imports_of(here) - set(found):
            found[module] = here.name
            inner = file_of(module)
            if inner is not None:
                waiting.append(inner)
    return found


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_an_attack_can_reach_nothing_that_knows_the_truth(attack: Path) -> None:
    for module, by in reachable(attack).items():
        knows = module.startswith(KNOWS_THE_TRUTH) and module not in HARMLESS
        assert not knows, f"{attack.name} reaches {module} by way of {by}"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_only_the_shadow_attack_reaches_the_clients_program(attack: Path) -> None:
    ways = {module: by for module, by in reachable(attack).items() if module.startswith(ONLY_FOR_SHADOWS)}
    if attack.stem == "shadow":
        assert "shadow_clients.py" in ways.values()
    else:
        assert ways == {}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_attacks_import_by_name_only(attack: Path) -> None:
    """An import that is put together at run time could not be checked."""
    text = attack.read_text(encoding="utf-8")
    for word in ("importlib", "__import__", "eval(", "exec(", "sys.modules", "open(", "pickle"):
        assert word not in text


ROOMS_BY_NAME = {"pseudo_items", "virtual_ratings"}
"""rules of the public algorithm, which attacks look up by the config's names"""


def looked_up(path: Path) -> set[str]:
    """Rooms that a file reaches through ``part``; an argument that isn't a plain string counts as itself."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    rooms = [node.args[0] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "part"]
    return {ast.literal_eval(room) if isinstance(room, ast.Constant) else ast.unparse(room) for room in rooms}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda path: path.stem)
def test_attacks_look_up_nothing_but_rules(attack: Path) -> None:
    assert looked_up(attack) <= ROOMS_BY_NAME


def test_a_room_that_is_looked_up_would_be_found(tmp_path: Path) -> None:
    cheat = tmp_path / "cheat.py"
    cheat.write_text("from fedrecplus.parts import part\nroom = 'audit'\npart(room, 'recording')\n")
    assert looked_up(cheat) == {"room"}


def test_a_forbidden_import_would_be_found(tmp_path: Path) -> None:
    cheat = tmp_path / "cheat.py"
    cheat.write_text("def attack(t, c):\n    from fedrecplus.simulation import start\n    return start\n")
    assert any(module.startswith(KNOWS_THE_TRUTH) for module in reachable(cheat))
