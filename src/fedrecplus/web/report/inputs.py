"""Finding what there is to report on: run folders and the JSON files of compare, family, ablate, theory and audit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedrecplus.errors import UserError
from fedrecplus.training.run_folder import CONFIG, RESULT, RunFolder

_AUDIT_ROW = {"scheme", "attack"}
_OURS = "JSON files of compare, family, ablate, theory or audit"


class Found(NamedTuple):
    """One thing to report on."""

    kind: str
    content: dict[str, Any]
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
    if content.get("kind") in ("ablation", "family", "heterogeneity", "theory", "run"):
        return str(content["kind"])
    return "comparison" if {"rows", "summary"} <= set(content) else None


def gather(paths: Sequence[Path]) -> list[Found]:
    """Everything in the given files and folders; a path without anything is an error."""
    found: list[Found] = []
    for path in paths:
        here = list(_in(path))
        if not here:
            raise UserError(f"{path} holds nothing to report on", f"give run folders, or {_OURS}")
        found += here
    return found


def _in(path: Path) -> Iterator[Found]:
    if not path.exists():
        raise UserError(f"{path} does not exist", "give a file or a folder")
    if path.is_file():
        content = _read(path)
        if kind := kind_of(content):
            yield Found(kind, content if isinstance(content, dict) else {"rows": content}, str(path))
    elif (path / RESULT).exists():
        yield Found("run", _run(path), str(path))
    else:
        for inner in sorted(path.iterdir()):
            if inner.is_dir() or inner.suffix == ".json":
                yield from _in(inner)


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}", f"give run folders, or {_OURS}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file", f"give run folders, or {_OURS}") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        begins = (text.strip().splitlines() or [""])[0][:40]
        cut_short = text.lstrip()[:1] in ("{", "[")
        wrong = f"is damaged JSON: {error}" if cut_short else f"is not a JSON file: it begins with {begins!r}"
        remedy = "make it again" if cut_short else f"give run folders, or {_OURS}; ratings go to `fedrecplus train`"
        raise UserError(f"{path} {wrong}", remedy) from None


def _run(path: Path) -> dict[str, Any]:
    """A run folder as one table."""
    folder = RunFolder(path)
    return {
        "kind": "run",
        "folder": str(path),
        "result": folder.result(),
        "metrics": folder.metrics() if (path / "metrics.jsonl").exists() else [],
        "config": (path / CONFIG).read_text(encoding="utf-8") if (path / CONFIG).exists() else "",
    }
