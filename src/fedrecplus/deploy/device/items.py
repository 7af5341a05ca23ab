"""Items by what people call them, looked up in the catalogues that servers have sent; and those that were put away.

What a person has put away without rating it stays on the device: no upload knows of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from fedrecplus.deploy.device.store import Store
from fedrecplus.errors import UserError, unknown_name

_SHOWN = 8
MARKS = ("seen", "hidden")


@dataclass(frozen=True)
class FoundItem:
    """An item that was asked for."""

    item: str
    title: str
    known: bool
    """whether a catalogue has it; False where none has come yet, so that nobody can tell"""


def find_item(store: Store, text: str) -> FoundItem:
    """The item with this id, this title, or the only one whose title has these words.

    Before the first catalogue came, every text is taken for an id.
    """
    titles = _titles(store)
    if not titles:
        return FoundItem(text, "", known=False)
    if text in titles:
        return FoundItem(text, titles[text], known=True)
    wanted = _plain(text)
    exact = [item for item, title in titles.items() if wanted in (_plain(title), _plain(_without_year(title)))]
    matches = exact or [item for item, title in titles.items() if wanted and wanted in _plain(title)]
    if not matches:
        problem = f"no item here has the id or the title {text!r}"
        raise UserError(problem, "give an id, or some words of the title, as the server's catalogue writes it")
    if len(matches) > 1:
        lines = [f"\n    {item}  {titles[item]}" for item in matches[:_SHOWN]]
        more = f"\n    and {len(matches) - _SHOWN} more" if len(matches) > _SHOWN else ""
        raise UserError(f"{text!r} fits {len(matches)} items", f"give the id of one:{''.join(lines)}{more}")
    return FoundItem(matches[0], titles[matches[0]], known=True)


def _titles(store: Store) -> dict[str, str]:
    """Id → title over all catalogues, the newest winning; empty titles where there are none."""
    titles: dict[str, str] = {}
    for (content,) in store.connection.execute("SELECT content FROM catalogues ORDER BY rowid"):
        ids, names = _ids_and_titles(content)
        titles |= dict(zip(ids, names or [""] * len(ids), strict=True))
    return titles


def _ids_and_titles(content: bytes) -> tuple[list[str], list[str]]:
    """The two columns alone: a whole catalogue would bring a model's modules with it."""
    _, _, text = msgspec.msgpack.decode(content)["arrays"]["about"]
    about = json.loads(text)
    return about["ids"], about["titles"]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _without_year(title: str) -> str:
    return title.rpartition(" (")[0] or title


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
