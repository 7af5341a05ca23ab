"""What a deployed run writes beside the usual files: a line per round, and where it stands this second."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOURNAL, PROGRESS, LOG = "journal.jsonl", "progress.json", "server.log"


@dataclass(frozen=True)
class Journal:
    """The two files of one run folder."""

    folder: Path

    def add(self, line: Mapping[str, Any]) -> None:
        """One more round; on the disk before the round counts."""
        with (self.folder / JOURNAL).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def lines(self) -> list[dict[str, Any]]:
        """All rounds so far; a line that a kill cut short is none."""
        lines: list[dict[str, Any]] = []
        path = self.folder / JOURNAL
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
        return lines

    def keep_up_to(self, round_number: int) -> list[dict[str, Any]]:
        """Drop lines of rounds that a restart does again; returns the others."""
        kept = [line for line in self.lines() if line["round"] <= round_number]
        self._write(kept)
        return kept

    def _write(self, lines: list[dict[str, Any]]) -> None:
        temporary = self.folder / f".{JOURNAL}.part"
        temporary.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        temporary.replace(self.folder / JOURNAL)

    def pardon(self) -> None:
        """Forget strikes and who spoke for whom.

        When the run goes on, nodes that were set aside are asked again, and a person may come through another node.
        """
        lines = self.lines()
        for line in lines:
            line.pop("bound", None)
        for line in lines[-1:]:
            line["standing"]["strikes"] = {}
        self._write(lines)

    def stand(self, **facts: Any) -> None:
        """Where the run is now; whoever follows it reads this."""
        temporary = self.folder / f".{PROGRESS}.part"
        temporary.write_text(json.dumps({"pid": os.getpid(), "at": time.time(), **facts}), encoding="utf-8")
        temporary.replace(self.folder / PROGRESS)

    def standing(self) -> dict[str, Any]:
        """What ``stand`` wrote last; empty where the run hasn't begun."""
        try:
            facts: dict[str, Any] = json.loads((self.folder / PROGRESS).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            return {}
        return facts
