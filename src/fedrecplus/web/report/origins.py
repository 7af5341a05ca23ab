"""Where numbers come from: each one's own command, version, commit, seed and time, not those of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.web.report.elements import details, table, text

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
