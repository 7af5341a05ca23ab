"""The run folder: what a training leaves behind, and what it goes on from.

``config.toml`` and ``data.json`` say what was asked for, ``metrics.jsonl`` grows by a line per evaluation,
``checkpoint.safetensors`` is there while the training runs, and ``result.json`` comes last: where it is, the run is
finished.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, dumps, flat, load_config, to_tables
from fedrecplus.data import Ratings, ShardedRatings
from fedrecplus.engines import RoundReport, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.files import check_writable, write_json, write_tensors, write_text
from fedrecplus.protocol import PublicItems
from fedrecplus.training.model_files import CLIENTS, MODEL, read_tensors

_TABLES, _FIGURES = ("popularity", "average"), ("mean", "people", "source", "epsilon")
_PREFIX = "public."


@dataclass(frozen=True)
class Tally:
    """Sums over rounds. Seconds are those of rounds alone, without evaluation, files and compiling."""

    seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    client_rounds: int = 0
    """how often a client took part in a round"""

    def after(self, report: RoundReport, seconds: float) -> Tally:
        """The sums with one round more."""
        return Tally(
            self.seconds + seconds,
            self.bytes_up + report.bytes_up,
            self.bytes_down + report.bytes_down,
            self.client_rounds + report.clients,
        )

    def figures(self) -> dict[str, Any]:
        """What results and metrics lines hold of it."""
        times = max(self.client_rounds, 1)
        return {
            "seconds": self.seconds,
            "bytes_up_per_client_round": self.bytes_up / times,
            "bytes_down_per_client_round": self.bytes_down / times,
        }

    def to_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)


@dataclass(frozen=True)
class Checkpoint:
    """All that a training needs to go on to the very same numbers. Draws are keyed, so no generator has a state; noise
    of the operating system is in what was released already."""

    state: SimulationState
    tally: Tally
    retries: int
    """attempts that diverged before this one"""
    released: Mapping[str, Any] = field(default_factory=dict)
    """figures of ``PublicItems``; none in a deployment, whose catalogue has them"""

    @classmethod
    def of(cls, state: SimulationState, tally: Tally, retries: int, public: PublicItems) -> Checkpoint:
        """With the figures that were released before the first round."""
        return cls(state, tally, retries, {name: getattr(public, name) for name in (*_TABLES, *_FIGURES)})

    def public(self, prepared: PublicItems) -> PublicItems:
        """These items with the figures that the run began with."""
        return replace(prepared, **self.released)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        figures = {name: self.released[name] for name in _FIGURES if name in self.released}
        facts = {"tally": self.tally.to_dict(), "retries": self.retries, "released": figures}
        tables = {_PREFIX + name: self.released[name] for name in _TABLES if name in self.released}
        write_tensors(path, self.state.arrays() | tables, {"facts": json.dumps(facts)}, private=True)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what ``write`` wrote."""
        arrays, metadata = read_tensors(path)
        facts = json.loads(metadata["facts"])
        tables = {name: arrays.pop(_PREFIX + name) for name in _TABLES if _PREFIX + name in arrays}
        released = {**tables, **facts.get("released", {})}
        return cls(SimulationState.of_arrays(arrays), Tally(**facts["tally"]), facts["retries"], released)


CONFIG, DATA, METRICS, RESULT = "config.toml", "data.json", "metrics.jsonl", "result.json"
CHECKPOINT = "checkpoint.safetensors"


@dataclass(frozen=True)
class RunFolder:
    """One run's folder."""

    path: Path

    @property
    def begun(self) -> bool:
        """Whether a run was ever started here."""
        return (self.path / CONFIG).exists() or self.finished

    @property
    def finished(self) -> bool:
        """Whether a run came to its end here."""
        return (self.path / RESULT).exists()

    def begin(self, config: Config, data: Mapping[str, Any], *, overwrite: bool) -> None:
        """Make the folder ready for a new run; refuse one that holds a run, unless it may be overwritten.

        One that isn't there yet is made for its operator alone: exact figures of the participants are in it.
        """
        self.check_free(overwrite=overwrite)
        if not self.path.exists():
            self.path.mkdir(parents=True, mode=0o700)
        self._remove_run()
        write_json(self.path / DATA, data)
        write_text(self.path / METRICS, "")
        write_text(self.path / CONFIG, dumps(config))

    def check_free(self, *, overwrite: bool) -> None:
        """Refuse a folder that holds a run already, or that can't be written to."""
        check_writable(self.path)
        if self.begun and not overwrite:
            kind = "a finished run" if self.finished else "an unfinished run"
            go_on = "" if self.finished else "--resume to go on with it, "
            raise UserError(f"{self.path} holds {kind}", f"{go_on}--overwrite to replace it, or another --out")

    def check_same(self, config: Config, data: Mapping[str, Any]) -> None:
        """Refuse to go on with other settings or other data than the run began with."""
        began = load_config(self.path / CONFIG, [chosen.rule for chosen in config.choices])
        if began != config:
            then, now = (flat(to_tables(one)) for one in (began, config))
            # an option that one of them lacks follows from another rule, which is named
            apart = [name for name, value in then.items() if name in now and value != now[name]]
            changed = ", ".join(f"{name}: {then[name]!r} then, {now[name]!r} now" for name in apart)
            raise UserError(
                f"{self.path} began with other settings ({changed})", "resume with those, or take another --out"
            )
        if self.data().get("fingerprint") != data.get("fingerprint"):
            raise UserError(f"{self.path} began with other ratings", "resume with the same data, fold and seed")

    def data(self) -> dict[str, Any]:
        """What the run was trained on, as it began."""
        return self._read_json(DATA)

    def result(self) -> dict[str, Any]:
        """The figures of a finished run."""
        return self._read_json(RESULT)

    def go_back_to_checkpoint(self) -> Checkpoint | None:
        """Where to go on from, if the run came that far; metrics of later rounds are dropped, since they come again."""
        path = self.path / CHECKPOINT
        saved = Checkpoint.read(path) if path.exists() else None
        self.rewrite_metrics(self.metrics(up_to=saved.state.server.round) if saved else [])
        return saved

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint."""
        checkpoint.write(self.path / CHECKPOINT)

    def metrics(self, up_to: int | None = None) -> list[dict[str, Any]]:
        """The metrics lines, up to a round; a line that a kill cut short ends them."""
        lines: list[dict[str, Any]] = []
        for text in (self.path / METRICS).read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                break
            if up_to is None or line["round"] <= up_to:
                lines.append(line)
        return lines

    def rewrite_metrics(self, lines: list[dict[str, Any]]) -> None:
        """Only these lines from now on: what came after a checkpoint will come again."""
        write_text(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in lines))

    def forget_attempt(self) -> None:
        """Drop what an attempt that diverged has left."""
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self.rewrite_metrics([])

    def add_metrics(self, line: Mapping[str, Any]) -> None:
        """One line more."""
        with (self.path / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def give_up(self) -> None:
        """Leave no run behind, for one that can't come to its end; the folder goes, too, if nothing else is in it."""
        self._remove_run()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the result, which makes the run a finished one."""
        write_json(self.path / RESULT, result)
        (self.path / CHECKPOINT).unlink(missing_ok=True)

    def _remove_run(self) -> None:
        for name in (RESULT, CHECKPOINT, MODEL, CLIENTS, METRICS, CONFIG, DATA):
            (self.path / name).unlink(missing_ok=True)

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = "finished run" if name == RESULT else "run"
            raise UserError(f"{self.path} holds no {what}", "give the folder that train wrote") from None
        except (OSError, json.JSONDecodeError) as error:
            raise UserError(
                f"{self.path / name}: {error}", "the file is damaged; train again with --overwrite"
            ) from None
        return content


def fingerprint(training: Ratings, test: Ratings | None) -> str:
    """A hash over what is trained and tested on, names and titles aside."""
    if isinstance(training, ShardedRatings):
        return hashlib.sha256(f"{training.folder.fingerprint()} fold {training.fold}".encode()).hexdigest()[:32]
    digest = hashlib.sha256()
    for ratings in (training, test):
        if ratings is None:
            digest.update(b"no test")
            continue
        digest.update(str(ratings.scale).encode())
        for table in (ratings.indptr, ratings.items, ratings.codes):
            digest.update(np.ascontiguousarray(table).tobytes())
    for ids in (training.client_ids, training.item_ids):
        digest.update(ids.tobytes() if ids.dtype.kind in "iu" else json.dumps(ids.tolist()).encode())
    return digest.hexdigest()[:32]
