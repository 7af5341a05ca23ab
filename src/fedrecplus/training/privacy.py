"""The ledger of releases in a run folder, what it has spent, and what ``result.json`` says of it.

A line is written before its release, so that a kill can't hide one. A release that is repeated has fresh noise and a
line of its own; with ``seeded_noise`` it is the same to the last bit, tells nothing new, and has one line. The ledger
outlives ``--overwrite``, since what was published can't be taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from fedrecplus.config import Config, dumps
from fedrecplus.engines import StatisticsBudget
from fedrecplus.parts.privacy import Release, ReleasePlan, epsilon_of
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import neighbouring, plan_of

LEDGER = "privacy.jsonl"
Report = TypeVar("Report")
Line = dict[str, Any]
"""of a ledger: one release"""


class Book(Protocol):
    """Where lines of releases are kept: a file of the run folder, or a table of a server's database."""

    def lines(self) -> list[dict[str, Any]]:
        """All releases that were noted."""

    def add(self, line: dict[str, Any]) -> None:
        """Note one; it lasts when this returns, or when the transaction ends that it is part of."""


@dataclass(frozen=True)
class BookFile:
    """The lines in a file of their own."""

    path: Path

    def lines(self) -> list[dict[str, Any]]:
        """All that were noted."""
        return privacy_lines(self.path)

    def add(self, line: dict[str, Any]) -> None:
        """On the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._cut_short() + json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _cut_short(self) -> bool:
        """Whether a kill has left half a line, which must not swallow the next."""
        return self.path.exists() and self.path.read_text(encoding="utf-8")[-1:] not in ("", "\n")


@dataclass(frozen=True)
class Ledger:
    """The lines of one run's releases, among those of others in the same book."""

    book: Book
    run: str
    """of this settings and these data"""
    plan: ReleasePlan
    delta: float

    @classmethod
    def of_model(
        cls, book: Book, config: Config, model: str, statistics: StatisticsBudget | None = None
    ) -> Ledger | None:
        """The ledger of a run, by its own or its model's name, which no other has; None where it has no budget.

        ``statistics`` is the budget of its statistics, where they alone have one.
        """
        if (plan := plan_of(config)) is not None:
            return cls(book, model, plan, float(config.privacy.settings.delta))
        if statistics is None:
            return None
        return cls(book, model, ReleasePlan(statistics.multiplier, (), 1.0, statistics.accountant), statistics.delta)

    def after(self, earlier: Sequence[Line]) -> None:
        """Note what the model that the run begins with has cost: the same people's ratings are in both."""
        noted = {line["release"] for line in self._lines()}
        for number, line in enumerate(earlier):
            release = f"earlier {number + 1}: {line['release']}"
            if release not in noted:
                self.book.add({**line, "run": self.run, "release": release})

    def before_statistics(self, *, fresh: bool = False) -> None:
        """Note that the statistics are about to be released; with ``fresh`` noise a repeated sum counts again."""
        if self.plan.statistics is not None:
            self._note("statistics", self.plan.statistics, 1.0, again=fresh)

    def before_each(self, left: Iterator[Report], round_number: int, *, fresh: bool) -> Iterator[Report]:
        """The rounds that are left, each noted before it begins."""
        while round_number < len(self.plan.rounds):
            self.before_round(round_number, fresh=fresh)
            yield next(left)
            round_number += 1

    def before_round(self, round_number: int, *, fresh: bool = False) -> None:
        """Note that a round's sums are about to be released; with ``fresh`` noise a repeated one counts again."""
        multiplier, sampling = self.plan.rounds[round_number], self.plan.sampling
        self._note(f"round {round_number + 1}", multiplier, sampling, again=fresh)

    def spent(self) -> float:
        """ε of this run's releases so far, those that were repeated with fresh noise included."""
        return budget_spent(self._lines(), self.delta)

    def _lines(self) -> list[dict[str, Any]]:
        return [line for line in self.book.lines() if line["run"] == self.run]

    def _note(self, release: str, multiplier: float, sampling: float, *, again: bool = False) -> None:
        noted = [line for line in self._lines() if line["release"] == release]
        if noted and not again:
            return
        line = {"run": self.run, "release": release, "noise_multiplier": multiplier, "sampling": sampling}
        line |= {"delta": self.delta, "accountant": self.plan.accountant}
        self.book.add(line)


def run_name(config: Config, fingerprint: str) -> str:
    """Of a run: the same settings and data have the same."""
    return hashlib.sha256(f"{fingerprint} {dumps(config)}".encode()).hexdigest()[:16]


def privacy_lines(path: Path) -> list[dict[str, Any]]:
    """All releases that were noted; what a kill cut short was never released."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            continue
    return lines


def budget_spent(lines: list[dict[str, Any]], delta: float) -> float:
    """ε of the noted releases, together."""
    return epsilon_of(_releases(lines), delta, _accountant(lines))


def _releases(lines: Sequence[Line]) -> list[Release]:
    kinds: dict[tuple[float, float], int] = {}
    for line in lines:
        kind = (line["noise_multiplier"], line["sampling"])
        kinds[kind] = kinds.get(kind, 0) + 1
    return [Release(multiplier, sampling, count) for (multiplier, sampling), count in kinds.items()]


def _accountant(lines: Sequence[Line]) -> str:
    return "RDP" if any(line["accountant"] == "RDP" for line in lines) else "PLD"


def _together(plan: ReleasePlan, earlier: Sequence[Line], delta: float) -> float:
    """ε of an earlier model's releases and all that are planned."""
    accountant = "RDP" if "RDP" in (plan.accountant, _accountant(earlier)) else "PLD"
    return epsilon_of([*_releases(earlier), *plan.releases()], delta, accountant)


def privacy_of(
    config: Config, public: PublicItems, most_numbers: int, ledger: Ledger | None, earlier: Sequence[Line] = ()
) -> dict[str, Any] | None:
    """What ``result.json`` says of the whole training's privacy; None where nothing is claimed.

    ``most_numbers`` are those of the largest upload, for a claim that is made number by number. A release that a kill
    made come twice is in the ledger twice, and is paid for twice; so is what was released for an ``earlier`` model.
    """
    plan, mechanism = plan_of(config), config.privacy
    if plan is None:
        return mechanism.claim(most_numbers, config.server.rounds)
    delta = mechanism.settings.delta
    planned = epsilon_of(plan.releases(), delta, plan.accountant)
    before = budget_spent(list(earlier), delta)
    together = _together(plan, earlier, delta) if earlier else planned
    return {
        "epsilon": together if ledger is None else max(together, ledger.spent()),
        **({"epsilon_before": before, "epsilon_of_this_training": planned} if earlier else {}),
        "delta": mechanism.settings.delta,
        "unit": mechanism.UNIT,
        "neighbouring": neighbouring(config),
        "mechanism": mechanism.MECHANISM,
        "accountant": f"{plan.accountant} (dp-accounting)",
        "noise_multiplier": list(plan.rounds),
        "sampling": {"probability": plan.sampling, "rounds": len(plan.rounds)},
        "statistics": {"source": public.source, "epsilon": public.epsilon, "noise_multiplier": plan.statistics},
        "seeded_noise": config.seeded_noise,
    }
