"""Finding what there is to report on: run folders and the JSON files of compare, ablate, theory and audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.training.run_folder import CONFIG, RESULT, RunFolder

_AUDIT_ROW = {"scheme", "attack"}
Content = dict[str, Any]


@dataclass(frozen=True)
class Found:
    """One thing to report on."""

    kind: str
    content: Content
    source: str
    """the file or folder it comes from"""


def kind_of(content: Any) -> str | None:
    """What a JSON file holds, by its content; None for what nobody here writes.

    >>> kind_of({"rows": [{"scheme": "fedmf", "attack": "popularity"}]})
    'audit'
    """
    rows = content.get("rows", []) if isinstance(content, dict) else content
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and set(rows[0]) >= _AUDIT_ROW:
        return "audit"
    if not isinstance(content, dict):
        return None
    if content.get("kind") in ("ablation", "heterogeneity", "theory", "run"):
        return str(content["kind"])
    return "comparison" if {"rows", "summary"} <= set(content) else None


def gather(paths: Sequence[Path]) -> list[Found]:
    """Everything in the given files and folders; a path without anything is an error."""
    found: list[Found] = []
    for path in paths:
        here = list(_in(path))
        if not here:
            raise UserError(
                f"{path} holds nothing to report on",
                "give run folders, or JSON files of compare, ablate, theory or audit",
            )
        found += here
    return found


def _in(path: Path) -> Iterator[Found]:
    if path.is_file():
        yield from _read(path)
    elif (path / RESULT).exists():
        yield Found("run", run_content(path), str(path))
    elif path.is_dir():
        for inner in sorted(path.iterdir()):
            if inner.is_dir() or inner.suffix == ".json":
                yield from _in(inner)
    else:
        raise UserError(f"{path} does not exist", "give a file or a folder")


def _read(path: Path) -> Iterator[Found]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: {error}", "give a JSON file of compare, ablate, theory or audit") from None
    kind = kind_of(content)
    if kind:
        yield Found(kind, content if isinstance(content, dict) else {"rows": content}, str(path))


def run_content(path: Path) -> Content:
    """A run folder as one table."""
    folder = RunFolder(path)
    return {
        "kind": "run",
        "folder": str(path),
        "result": folder.result(),
        "metrics": folder.metrics() if (path / "metrics.jsonl").exists() else [],
        "data": folder.data() if (path / "data.json").exists() else {},
        "config": (path / CONFIG).read_text(encoding="utf-8") if (path / CONFIG).exists() else "",
    }


def of_kind(found: Iterable[Found], kind: str) -> list[Content]:
    """All of one kind."""
    return [each.content for each in found if each.kind == kind]
