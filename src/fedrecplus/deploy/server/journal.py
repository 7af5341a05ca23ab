"""What a deployed run writes beside the usual files: a line per round, its progress, and who works in the folder."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.files import locked, write_text

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
            with contextlib.suppress(json.JSONDecodeError):
                lines.append(json.loads(text))
        return lines

    def keep_up_to(self, round_number: int) -> list[dict[str, Any]]:
        """Drop lines of rounds that a restart does again; returns the others."""
        return self._write(line for line in self.lines() if line["round"] <= round_number)

    def pardon(self) -> None:
        """Forget strikes and who spoke for whom.

        When the run goes on, nodes that were set aside are asked again, and a person may come through another node.
        """
        lines = [{**line, "bound": {}} for line in self.lines()]
        for line in lines[-1:]:
            line.get("refusals", {})["strikes"] = {}
        self._write(lines)

    def _write(self, lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        lines = list(lines)
        write_text(self.folder / JOURNAL, "".join(json.dumps(line) + "\n" for line in lines))
        return lines

    def set_progress(self, **facts: Any) -> None:
        """Say where the run is now, to whoever follows it. Often called, so not forced onto the disk."""
        temporary = self.folder / f".{PROGRESS}.part"
        temporary.write_text(json.dumps({"pid": os.getpid(), "at": time.time(), **facts}), encoding="utf-8")
        temporary.replace(self.folder / PROGRESS)

    def progress(self) -> dict[str, Any]:
        """What ``set_progress`` wrote last; empty where the run hasn't begun."""
        try:
            facts: dict[str, Any] = json.loads((self.folder / PROGRESS).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError):
            return {}
        return facts


def only_server_of(folder: Path, patience: float = 120.0) -> contextlib.AbstractContextManager[None]:
    """Hold the folder's lock. A killed SuperLink can leave its app behind for a while, and a new one must wait."""
    return locked(folder / ".lock", f"{folder} as its server", "stop it first", patience)


def is_served(folder: Path) -> bool:
    """Whether a server app works in the folder at this moment."""
    try:
        with only_server_of(folder, patience=0.0):
            return False
    except UserError:
        return True
