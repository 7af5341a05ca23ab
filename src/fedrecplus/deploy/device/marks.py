"""Items that a person has put away without rating them. They stay on the device: no upload knows of them."""

from __future__ import annotations

import json

from fedrecplus.deploy.device.store import Store
from fedrecplus.errors import unknown_name

MARKS = ("seen", "hidden")


def marks_of(store: Store, person: int = 0) -> dict[str, str]:
    """Item → mark."""
    found: dict[str, str] = json.loads(store.fact(_fact(person)) or "{}")
    return found


def mark_item(store: Store, item: str, mark: str | None, person: int = 0) -> None:
    """Put an item away, or bring it back with None."""
    if mark is not None and mark not in MARKS:
        raise unknown_name("mark", mark, MARKS)
    with store.changing():
        marks = marks_of(store, person)
        marks.pop(item, None)
        if mark is not None:
            marks[item] = mark
        store.put("facts", [(_fact(person), json.dumps(marks))])


def _fact(person: int) -> str:
    return f"marks {person}"
