"""Cases of the privacy–accuracy frontier: what comparisons say of a training beside what audits say of it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedrecplus.audit.attacks import KNOWINGS
from fedrecplus.config import Config, flat
from fedrecplus.parts import Channel, Mechanism, built_in
from fedrecplus.parts.channel import SummingChannel

Tables = Mapping[str, Any]
"""a config as plain tables"""
Content = Mapping[str, Any]
"""of a JSON file"""
Identity = tuple[Any, ...]
_ROUNDS = "server.rounds"
_SKIPPED = "cryptography"
"""the option of channels by which a simulation leaves it out: its seconds are then those of something else"""
_OF_NO_ACCOUNT = ("seed", "engine", "precision", "algorithm", f"channel.{_SKIPPED}")


@dataclass(frozen=True)
class Attacked:
    """What one attack reached, beside what it reaches without the person's uploads; None where it isn't known."""

    auc: float | None
    worst_tenth: float | None
    control: float | None
    exact: float | None
    """share of ratings read exactly"""
    exact_control: float | None
    knowing: str = ""
    """what the attacker knows besides what the server sees; empty where nothing"""

    @property
    def gain(self) -> float | None:
        """AUC over its control, or over chance where there is no control; None where there is no AUC."""
        return None if self.auc is None else self.auc - (0.5 if self.control is None else self.control)


@dataclass
class Case:
    """One way to train, with what it costs and what it gives away. Figures are None until something measured them."""

    dataset: str
    algorithm: str
    channel: str
    rows: str
    protection: str
    rmse: float | None = None
    ndcg: float | None = None
    kb: float | None = None
    """that a client sends in the whole training"""
    rounds: float | None = None
    seconds: float | None = None
    """of a round, all clients one after another; None where cryptography was skipped"""
    attacks: dict[str, Attacked] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    """by their dotted names, without what doesn't change a model's figures"""
    told_apart: tuple[str, ...] = ()
    """settings that name it, where others have the same algorithm, channel, rows and budget"""

    @property
    def name(self) -> str:
        """Algorithm, channel and rows, ε where there is one, and what tells it from others like it."""
        more = [self.protection] if self.protection.startswith("ε") else []
        more += [f"{name}={self.settings[name]}" for name in self.told_apart if name in self.settings]
        return " · ".join([self.algorithm, ", ".join(filter(None, (self.channel, self.rows))), *more])

    @property
    def strongest(self) -> tuple[str, Attacked] | None:
        """The attack of a server that gains most over its control, the highest AUC among equals; None where none has.

        An attacker who knows everybody else's ratings is another question, and has a column of its own.
        """
        known = [(name, attacked) for name, attacked in self._of_server if attacked.auc is not None]
        return max(known, key=lambda pair: (round(pair[1].gain or 0.0, 3), pair[1].auc or 0.0), default=None)

    @property
    def reader(self) -> tuple[str, Attacked] | None:
        """The attack that reads most ratings exactly; None where none tries."""
        known = [(name, attacked) for name, attacked in self._of_server if attacked.exact is not None]
        return max(known, key=lambda pair: pair[1].exact or 0.0, default=None)

    @property
    def _of_server(self) -> list[tuple[str, Attacked]]:
        return [(name, attacked) for name, attacked in self.attacks.items() if not attacked.knowing]


def cases_of(
    comparisons: Sequence[Content], audits: Sequence[Content], results: Sequence[Mapping[str, Any]] = ()
) -> list[Case]:
    """A case per data set and way to train, best RMSE first.

    A training is known by its settings: runs that differ in one are never averaged. An audit belongs to the training
    with its settings or, since audits are also made with one local epoch, to the only one of its algorithm, channel,
    rows and privacy. Comparisons have folds, so their figures come first; ``results`` of single runs fill in what is
    missing, and audits what is missing then. A short run with all cryptography lends its seconds per round to the
    training that it is the beginning of.
    """
    by_identity: dict[Identity, dict[Identity, Case]] = {}
    for rows in [*(content["rows"] for content in comparisons), results]:
        groups: dict[tuple[Identity, Identity], list[Mapping[str, Any]]] = {}
        for row in rows:
            identity = _identity(row["dataset"], row["algorithm"], row["config"])
            groups.setdefault((identity, tuple(_flat(row["config"]).items())), []).append(row)
        for (identity, settings), own in groups.items():
            alike = by_identity.setdefault(identity, {})
            if longer := _beginning_of(alike, dict(settings), own):
                longer.seconds = _seconds_of_a_round(own)
            else:
                _measure(alike.setdefault(settings, _case(identity, dict(settings))), own)
    for content in audits:
        for row in content["rows"]:
            tables = _audited_config(content, row)
            identity = _identity(content.get("dataset", ""), _scheme_name(row["scheme"], tables), tables)
            settings, alike = tuple(_flat(tables).items()), by_identity.setdefault(identity, {})
            if settings not in alike and len(alike) == 1:
                (case,) = alike.values()
            else:
                case = alike.setdefault(settings, _case(identity, dict(settings)))
            _fill(case, row, tables)
            if row.get("applies") is not False:  # an attack with nothing to look at found nothing
                case.attacks[row["attack"]] = _attacked(row)
    for alike in by_identity.values():
        _tell_apart(list(alike.values()))
    cases = [case for alike in by_identity.values() for case in alike.values()]
    return sorted(cases, key=lambda case: (case.dataset, case.rmse is None, case.rmse or 0.0))


def protection_of(tables: Tables) -> str:
    """What a reader may count on: a budget, cryptography, or nothing. A budget is a person's unless it says of what.

    >>> protection_of({"channel": {"rule": "clear"}})
    'none'
    >>> protection_of({"channel": {"rule": "sums"}})
    'assumed'
    """
    privacy, channel = tables.get("privacy", {}), tables.get("channel", {})
    mechanism = privacy.get("rule", "none")
    if mechanism in built_in(Mechanism) and privacy.get("epsilon") is not None:
        unit = Mechanism.choose(mechanism).UNIT
        return f"ε = {privacy['epsilon']:g}" + ("" if unit == "user" else f" per {unit}")
    rule = channel.get("rule", "clear")
    if rule not in built_in(Channel) or Channel.choose(rule).VIEW == "uploads":
        return "none"
    if not isinstance(Channel.choose(rule), SummingChannel):
        return "assumed"
    return {"rows": "computational, values alone", "blocks": "computational, blocks seen"}.get(
        channel.get("rows", "whole"), "computational"
    )


def _identity(dataset: str, algorithm: str, tables: Tables) -> Identity:
    channel, privacy = tables.get("channel", {}), tables.get("privacy", {})
    chosen = (channel.get("rule", "clear"), channel.get("rows", ""), protection_of(tables), privacy.get("rule", "none"))
    return dataset, algorithm, *chosen


def _case(identity: Identity, settings: dict[str, Any]) -> Case:
    dataset, algorithm, channel, rows, protection, _ = identity
    return Case(dataset, algorithm, channel, rows, protection, settings=settings)


def _flat(tables: Tables) -> dict[str, Any]:
    """Settings by their dotted names; not the seed, how it is evaluated, or what a simulation leaves out."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in sorted(flat(tables).items())
        if name not in _OF_NO_ACCOUNT and not name.startswith("evaluation.")
    }


def _tell_apart(cases: Sequence[Case]) -> None:
    """Name the settings in which cases differ that are alike otherwise."""
    names = sorted({name for case in cases for name in case.settings})
    differing = [name for name in names if len({repr(case.settings.get(name)) for case in cases}) > 1]
    for case in cases:
        case.told_apart = tuple(differing)


def _beginning_of(
    alike: Mapping[Identity, Case], settings: dict[str, Any], rows: Sequence[Mapping[str, Any]]
) -> Case | None:
    """The training that runs with computed cryptography are the first rounds of, where it lacks seconds."""
    computed = all(row["config"].get("channel", {}).get(_SKIPPED) == "computed" for row in rows)
    for case in alike.values() if computed else ():
        differing = {name for name in case.settings | settings if case.settings.get(name) != settings.get(name)}
        fewer = settings.get(_ROUNDS, 0) < case.settings.get(_ROUNDS, 0)
        if case.seconds is None and differing == {_ROUNDS} and fewer:
            return case
    return None


def _seconds_of_a_round(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """The mean over those that left no cryptography out."""
    return _mean([row["seconds"] / row["rounds"] for row in rows if row["rounds"] and not _skips(row["config"])])


def _measure(case: Case, rows: Sequence[Mapping[str, Any]]) -> None:
    """Means over folds, where nothing is known yet."""
    sent = [row["bytes_up_per_client_round"] * _rounds_of(row["config"]) / 1000 for row in rows]
    figures = {
        "rmse": _mean([row["rmse"] for row in rows]),
        "ndcg": _mean([(row.get("ranking") or {}).get("ndcg@10") for row in rows]),
        "kb": _mean(sent),
        "rounds": _mean([row["rounds"] for row in rows]),
        "seconds": _seconds_of_a_round(rows),
    }
    for name, value in figures.items():
        if getattr(case, name) is None:
            setattr(case, name, value)


def _fill(case: Case, row: Mapping[str, Any], tables: Tables) -> None:
    """What only the audit knows of a case; its one fold doesn't replace the folds of a comparison."""
    if case.rmse is None:
        case.rmse = row.get("rmse")
    if case.kb is None and row.get("bytes_up_per_client_round") is not None and tables:
        case.kb = row["bytes_up_per_client_round"] * _rounds_of(tables) / 1000


def _attacked(row: Mapping[str, Any]) -> Attacked:
    names = ("auc", "auc_worst_tenth", "auc_control", "rating_exact", "rating_exact_control")
    auc, worst_tenth, control, exact, exact_control = (row.get(name) for name in names)
    if row.get("likes_alone"):  # ratings that are all the same are guessed, not read
        exact = exact_control = None
    if "rows" in (row.get("blind") or ()):  # the same of noise: no figure of what the server sees
        auc = worst_tenth = control = None
    more = row.get("knowing") or KNOWINGS[0]
    return Attacked(auc, worst_tenth, control, exact, exact_control, "" if more == KNOWINGS[0] else str(more))


def _audited_config(content: Mapping[str, Any], row: Mapping[str, Any]) -> Tables:
    """The config of a row's case, by its label; of one whose config isn't there, the channel that the row names."""
    text = content.get("configs", {}).get(f"{row['scheme']}, K={row.get('local_epochs')}")
    if text is not None:
        return tomllib.loads(text)
    return {"channel": {"rule": row.get("channel") or "clear", "rows": row.get("rows_sent") or ""}}


def _scheme_name(scheme: str, tables: Tables) -> str:
    """The algorithm as comparisons and runs name it: that of the config or, where it has none, the file's own name."""
    named = tables.get("algorithm", Config().algorithm)
    if named != Config().algorithm:
        return str(named)
    return Path(scheme).stem if scheme.endswith(".toml") else Path(scheme).name


def _rounds_of(tables: Tables) -> float:
    """Rounds that one client takes part in; none of a predictor that isn't trained in rounds."""
    return float(tables.get("server", {}).get("rounds", 0)) * float(tables.get("cohort", {}).get("fraction", 1.0))


def _skips(tables: Tables) -> bool:
    return bool(tables.get("channel", {}).get(_SKIPPED) == "skipped")


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
