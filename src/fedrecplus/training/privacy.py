"""The ledger of releases in a run folder, what it has spent, and what ``result.json`` says of it.

A line is written before its release, so that a kill can't hide one. A run that goes on draws the same noise again, and
a release that is repeated bit for bit tells nothing new: it has one line. The ledger outlives ``--overwrite``, since
what was published can't be taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from fedrecplus.config import Config, dumps
from fedrecplus.engines import StatisticsBudget
from fedrecplus.parts.privacy import Release, ReleasePlan, epsilon_of
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import neighbouring, plan_of

LEDGER = "privacy.jsonl"
Report = TypeVar("Report")


@dataclass(frozen=True)
class Ledger:
    """The lines of one run's releases, among those of earlier runs in the same folder."""

    path: Path
    run: str
    """of this settings and these data"""
    plan: ReleasePlan
    delta: float
    also: str = ""
    """another name of the same run: the one that its first lines have"""

    @classmethod
    def of(cls, folder: Path, config: Config, fingerprint: str) -> Ledger | None:
        """The ledger of a run; None where it has no budget."""
        plan = plan_of(config)
        if plan is None:
            return None
        return cls(folder / LEDGER, _name(config, fingerprint), plan, float(config.privacy.settings.delta))

    @classmethod
    def of_model(cls, folder: Path, config: Config, model: str) -> Ledger | None:
        """The ledger of a deployed run, by its model's name, which no other has.

        A version with a setting more would give the same settings another name, and forget what was spent before it.
        """
        ledger = cls.of(folder, config, model)
        return None if ledger is None else replace(ledger, run=model, also=ledger.run)

    @classmethod
    def of_statistics(cls, folder: Path, config: Config, fingerprint: str, budget: StatisticsBudget) -> Ledger:
        """The ledger of a run whose statistics alone have a budget."""
        plan = ReleasePlan(budget.multiplier, (), 1.0, budget.accountant)
        return cls(folder / LEDGER, _name(config, fingerprint), plan, budget.delta)

    def before_statistics(self) -> None:
        """Note that the statistics are about to be released."""
        if self.plan.statistics is not None:
            self._note("statistics", self.plan.statistics, 1.0)

    def before_each(self, left: Iterator[Report], round_number: int) -> Iterator[Report]:
        """The rounds that are left, each noted before it begins."""
        while round_number < len(self.plan.rounds):
            self.before_round(round_number)
            yield next(left)
            round_number += 1

    def before_round(self, round_number: int, *, fresh: bool = False) -> None:
        """Note that a round's sums are about to be released; with ``fresh`` noise a repeated one counts again."""
        multiplier, sampling = self.plan.rounds[round_number], self.plan.sampling
        self._note(f"round {round_number + 1}", multiplier, sampling, again=fresh)

    def spent(self) -> float:
        """ε of this run's releases so far, those that were repeated with fresh noise included."""
        return spent(self._lines(), self.delta)

    def _lines(self) -> list[dict[str, Any]]:
        return [line for line in lines_of(self.path) if line["run"] in (self.run, self.also)]

    def _note(self, release: str, multiplier: float, sampling: float, *, again: bool = False) -> None:
        noted = [line for line in self._lines() if line["release"] == release]
        if noted and not again:
            return
        line = {"run": self.run, "release": release, "noise_multiplier": multiplier, "sampling": sampling}
        line |= {"delta": self.delta, "accountant": self.plan.accountant}
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._cut_short() + json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _cut_short(self) -> bool:
        """Whether a kill has left half a line, which must not swallow the next."""
        return self.path.exists() and self.path.read_text(encoding="utf-8")[-1:] not in ("", "\n")


def _name(config: Config, fingerprint: str) -> str:
    """Of a run: the same settings and data have the same."""
    return hashlib.sha256(f"{fingerprint} {dumps(config)}".encode()).hexdigest()[:16]


def lines_of(path: Path) -> list[dict[str, Any]]:
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


def spent(lines: list[dict[str, Any]], delta: float) -> float:
    """ε of the noted releases, together."""
    accountant = "RDP" if any(line["accountant"] == "RDP" for line in lines) else "PLD"
    kinds: dict[tuple[float, float], int] = {}
    for line in lines:
        kind = (line["noise_multiplier"], line["sampling"])
        kinds[kind] = kinds.get(kind, 0) + 1
    releases = [Release(multiplier, sampling, count) for (multiplier, sampling), count in kinds.items()]
    return epsilon_of(releases, delta, accountant)


def privacy_of(config: Config, public: PublicItems, most_numbers: int, *, seeded: bool = True) -> dict[str, Any] | None:
    """What ``result.json`` says of the whole training's privacy; None where nothing is claimed.

    ``most_numbers`` are those of the largest upload, for a claim that is made number by number; ``seeded`` says whether
    the noise came from the seed, as in simulation, or from the operating system.
    """
    plan, mechanism = plan_of(config), config.privacy
    if plan is None:
        return mechanism.claim(most_numbers, config.server.rounds)
    return {
        "epsilon": epsilon_of(plan.releases(), mechanism.settings.delta, plan.accountant),
        "delta": mechanism.settings.delta,
        "unit": mechanism.UNIT,
        "neighbouring": neighbouring(config),
        "mechanism": mechanism.MECHANISM,
        "accountant": f"{plan.accountant} (dp-accounting)",
        "noise_multiplier": list(plan.rounds),
        "sampling": {"probability": plan.sampling, "rounds": len(plan.rounds)},
        "statistics": {"source": public.source, "epsilon": public.epsilon, "noise_multiplier": plan.statistics},
        "seeded_noise": seeded,
    }
