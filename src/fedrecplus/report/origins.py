"""Where numbers come from: each one's own command, version, commit, seed and time, not those of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.report.elements import config_details, table, text

_NOT_RECORDED = "not recorded"
_NO_CHECKOUT = "none: the package did not run from a git checkout"
_HEADINGS = ("run", "folds", "seed", "begun, UTC", "seconds")


def made(facts: Mapping[str, Any] | None, configs: Mapping[str, str] | None = None) -> str:
    """What a study's JSON file says of itself, and its settings."""
    return _origin(_list({**_shared(facts), **_own(facts)}), configs)


def made_of_runs(runs: Sequence[Mapping[str, Any]], configs: Mapping[str, str] | None = None) -> str:
    """What many runs say of themselves, each as in ``result.json``: those of one command and commit together."""
    groups: dict[tuple[tuple[str, str], ...], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault(tuple(_shared(run.get("made")).items()), []).append(run)
    parts = [_list(dict(shared)) + table(_HEADINGS, _lines(own)) for shared, own in groups.items()]
    return _origin("".join(parts), configs)


def _origin(parts: str, configs: Mapping[str, str] | None) -> str:
    settings = "".join(config_details(name, config) for name, config in (configs or {}).items())
    return f'<details class="made"><summary>where these numbers come from</summary>{parts}{settings}</details>'


def _list(facts: Mapping[str, str]) -> str:
    lines = [f"<dt>{text(name)}</dt><dd><code>{text(value)}</code></dd>" for name, value in facts.items()]
    return f"<dl>{''.join(lines)}</dl>"


def _shared(facts: Mapping[str, Any] | None) -> dict[str, str]:
    """Command, version and commit; of a run that was interrupted, also those that it went on with."""
    if not facts:
        return dict.fromkeys(("command", "version", "commit"), _NOT_RECORDED)
    shown = {
        "command": str(facts.get("command") or _NOT_RECORDED),
        "version": f"fedrecplus {facts['version']}" if facts.get("version") else _NOT_RECORDED,
        "commit": str(facts["commit"] or _NO_CHECKOUT) if "commit" in facts else _NOT_RECORDED,
    }
    if "resumed" in facts:
        shown |= {f"{name}, resumed": value for name, value in _shared(facts["resumed"]).items()}
    return shown


def _own(facts: Mapping[str, Any] | None) -> dict[str, str]:
    """Seed and time."""
    if not facts:
        return dict.fromkeys(("seed", "time, UTC"), _NOT_RECORDED)
    took = f", {facts['seconds']} s" if "seconds" in facts else ""
    where = f" on {facts['cores']} cores, Python {facts['python']}" if "cores" in facts else ""
    began = _time(facts["when"]) if facts.get("when") else _NOT_RECORDED
    return {"seed": str(facts.get("seed", _NOT_RECORDED)), "time, UTC": f"{began}{took}{where}"}


def _time(when: str) -> str:
    """A recorded time for people; all of them are UTC.

    >>> _time("2026-11-15T14:22:07+00:00")
    '2026-11-15 14:22:07'
    """
    return when.replace("T", " ").removesuffix("+00:00")


def _lines(runs: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """A line per algorithm, data set and seed; its folds were begun between two times."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault((f"{run['algorithm']}, {run['dataset']}", str(run["seed"])), []).append(run)
    lines = []
    for (name, seed), own in groups.items():
        folds = ", ".join("all" if run["fold"] is None else str(run["fold"]) for run in own)
        facts = [run.get("made") or {} for run in own]
        times = sorted({_time(each["when"]) for each in facts if each.get("when")}) or [_NOT_RECORDED]
        seconds = [str(each["seconds"]) for each in facts if "seconds" in each]
        lines.append([name, folds, seed, " to ".join(dict.fromkeys((times[0], times[-1]))), ", ".join(seconds)])
    return lines
