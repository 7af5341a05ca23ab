"""A deployed run's journal, a line of JSON for each round, and where the run is now."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.deploy.server.app_process import process_began
from fedrecplus.files import write_text

JOURNAL, PROGRESS = "journal.jsonl", "progress.json"


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
        lines, path = list[dict[str, Any]](), self.folder / JOURNAL
        for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            with contextlib.suppress(json.JSONDecodeError):
                lines.append(_as_today(json.loads(text)))
        return lines

    def keep_up_to(self, round_number: int) -> list[dict[str, Any]]:
        """Drop lines of rounds that a restart does again; returns the others."""
        return self._write([line for line in self.lines() if line["round"] <= round_number])

    def pardon(self) -> None:
        """Forget strikes and who spoke for whom: all nodes are asked again, and people may come through other ones."""
        lines = [{**line, "bound": {}} for line in self.lines()]
        for line in lines[-1:]:
            line.get("refusals", {})["strikes"] = {}
        self._write(lines)

    def _write(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        write_text(self.folder / JOURNAL, "".join(json.dumps(line) + "\n" for line in lines))
        return lines

    def set_progress(self, **facts: Any) -> None:
        """Say where the run is now, to whoever follows it. Often called, so not forced onto the disk."""
        temporary, text = (
            self.folder / f".{PROGRESS}.part",
            json.dumps({"pid": os.getpid(), "began": process_began(os.getpid()), "at": time.time(), **facts}),
        )
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(self.folder / PROGRESS)
        except OSError:  # a full disk; the file that is there has room
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            with contextlib.suppress(OSError), (self.folder / PROGRESS).open("r+", encoding="utf-8") as file:
                file.write(text)
                file.truncate()

    def progress(self) -> dict[str, Any]:
        """What ``set_progress`` wrote last; empty where the run hasn't begun."""
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return dict(json.loads((self.folder / PROGRESS).read_text(encoding="utf-8")))
        return {}


def _as_today(line: dict[str, Any]) -> dict[str, Any]:
    """A line of the journal by its names of today; 0.1 had another one for refusals, and counted uploads by clients."""
    return {"uploads": len(line.get("clients", ())), "refusals": line.get("standing", {}), **line}
