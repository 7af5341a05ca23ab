"""What there is to report on, run folders and JSON files of studies, and where each of its numbers comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fedrecplus.errors import UserError
from fedrecplus.files import read_text
from fedrecplus.training import CONFIG, RESULT, RunFolder
from fedrecplus.web.report.elements import details, table, text

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
    inputs: list[Found] = []
    for path in paths:
        here = list(_in(path))
        if not here:
            raise UserError(f"{path} holds nothing to report on", f"give run folders, or {_OURS}")
        inputs += here
    return inputs


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
    content = read_text(path, f"give run folders, or {_OURS}")
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        begins = (content.strip().splitlines() or [""])[0][:40]
        cut_short = content.lstrip()[:1] in ("{", "[")
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


_NOT_RECORDED = "not recorded"
_NO_CHECKOUT = "none: the package did not run from a git checkout"
_HEADINGS = ("run", "folds", "seed", "begun, UTC", "seconds")
Facts = Mapping[str, Any]


def made(facts: Facts | None, configs: Mapping[str, str] | None = None) -> str:
    """What a study's JSON file says of itself, and its settings."""
    facts = facts or {}
    took = f", {facts['seconds']} s" if "seconds" in facts else ""
    where = f" on {facts['cores']} cores, Python {facts['python']}" if "cores" in facts else ""
    own = {"seed": str(facts.get("seed", _NOT_RECORDED)), "time, UTC": f"{_time(facts)}{took}{where}"}
    return _origin(_list({**_shared(facts), **own}), configs)


def made_of_runs(runs: Sequence[Facts], configs: Mapping[str, str] | None = None) -> str:
    """What many runs say of themselves, each as in ``result.json``: those of one command and commit together."""
    groups: dict[tuple[tuple[str, str], ...], list[Facts]] = {}
    for run in runs:
        groups.setdefault(tuple(_shared(run.get("made") or {}).items()), []).append(run)
    parts = [_list(dict(shared)) + table(_HEADINGS, _lines(own)) for shared, own in groups.items()]
    return _origin("".join(parts), configs)


def _origin(parts: str, configs: Mapping[str, str] | None) -> str:
    settings = "".join(details(name, f"<pre>{text(config)}</pre>") for name, config in (configs or {}).items())
    return f'<details class="made"><summary>where these numbers come from</summary>{parts}{settings}</details>'


def _list(facts: Mapping[str, str]) -> str:
    lines = [f"<dt>{text(name)}</dt><dd><code>{text(value)}</code></dd>" for name, value in facts.items()]
    return f"<dl>{''.join(lines)}</dl>"


def _shared(facts: Facts) -> dict[str, str]:
    """Command, version and commit; of a run that was interrupted, also those that it went on with."""
    shown = {
        "command": str(facts.get("command") or _NOT_RECORDED),
        "version": f"fedrecplus {facts['version']}" if facts.get("version") else _NOT_RECORDED,
        "commit": str(facts["commit"] or _NO_CHECKOUT) if "commit" in facts else _NOT_RECORDED,
    }
    resumed = _shared(facts["resumed"]) if "resumed" in facts else {}
    return shown | {f"{name}, resumed": value for name, value in resumed.items()}


def _time(facts: Facts) -> str:
    """When it began, for people; all recorded times are UTC.

    >>> _time({"when": "2026-11-15T14:22:07+00:00"})
    '2026-11-15 14:22:07'
    """
    return str(facts.get("when") or _NOT_RECORDED).replace("T", " ").removesuffix("+00:00")


def _lines(runs: Sequence[Facts]) -> list[list[str]]:
    """A line per algorithm, data set and seed; its folds were begun between two times."""
    groups: dict[tuple[str, str], list[Facts]] = {}
    for run in runs:
        groups.setdefault((f"{run['algorithm']}, {run['dataset']}", str(run["seed"])), []).append(run)
    lines = []
    for (name, seed), own in groups.items():
        facts = [run.get("made") or {} for run in own]
        times = sorted({_time(each) for each in facts if each.get("when")}) or [_NOT_RECORDED]
        seconds = ", ".join(str(each["seconds"]) for each in facts if "seconds" in each)
        lines.append([name, fold_names(own), seed, " to ".join(dict.fromkeys((times[0], times[-1]))), seconds])
    return lines


def fold_names(runs: Sequence[Facts]) -> str:
    """The folds that runs were tested on; ``all`` for a run on all ratings."""
    return ", ".join("all" if run["fold"] is None else str(run["fold"]) for run in runs)
