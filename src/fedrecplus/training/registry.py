"""A registry of published models: numbered folders that never change, and a file that says which one is current.

``1/``, ``2/``, … each hold ``model.safetensors``, the public table alone, and ``published.json``: its digest, its
figures and where it comes from. ``current`` holds a number. A folder is written beside and renamed, then ``current`` is
replaced: whoever is killed in between leaves the model current that was.

What a client keeps to itself is never here: a model is read and written anew, field by field of ``SharedModel``, as
``published_model`` makes it for everybody.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.files import check_writable, locked, write_json, write_text
from fedrecplus.training.model_files import MODEL, SharedModel
from fedrecplus.training.publishing import given_away, published_figure, published_model
from fedrecplus.training.run_folder import RunFolder

CURRENT, PUBLISHED = "current", "published.json"
_LOCK, _PART = ".lock", ".part"
_PATIENCE = 60.0
"""seconds that one publication waits for another"""
_FIGURES = ("dataset", "algorithm", "rounds", "rmse", "mae", "channel", "simulation_only", "likes_alone", "statistics")
"""of ``result.json``, for everybody to see"""
_MADE = ("version", "commit", "when")
"""of a run's provenance: the command stays out, since it names the operator's files, and so does the seed"""


@dataclass(frozen=True)
class PublishedModel:
    """One model of a registry."""

    folder: Path
    number: int
    digest: str
    """SHA-256 of ``model.safetensors``"""
    when: str
    """of its publication"""
    figures: Mapping[str, Any]
    """errors and lists on test ratings, what it was trained on and by"""
    made: Mapping[str, Any]
    """version, commit and time of the training"""

    @classmethod
    def read(cls, folder: Path) -> PublishedModel:
        """What ``published.json`` says."""
        path = folder / PUBLISHED
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            return cls(folder, int(folder.name), **facts)
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"{path}: {error}", "the registry is damaged; publish the run again") from None

    def model(self, allow: Collection[str] = ()) -> SharedModel:
        """The model itself, if its file is the one that was published."""
        self.check()
        return SharedModel.read(self.folder, allow)

    def check(self) -> None:
        """Refuse a file that isn't the one that was published."""
        actual = file_digest(self.folder / MODEL)
        if actual != self.digest:
            raise UserError(
                f"{self.folder / MODEL} is not what was published: its digest is {actual[:12]}, not {self.digest[:12]}",
                "roll back to another model, or publish the run again",
            )


@dataclass(frozen=True)
class Registry:
    """A folder of published models."""

    folder: Path

    def publish(self, run: Path, allow: Collection[str] = ()) -> PublishedModel:
        """Copy a finished run's public model and make it current; one that is here already is made current again."""
        return self.take(lambda: finished_model(run, allow))

    def take(self, made: Callable[[], tuple[SharedModel, dict[str, Any]]]) -> PublishedModel:
        """Write a model and what may be said of it, as ``finished_model`` has them, and make it current."""
        check_writable(self.folder)
        with self._alone():
            self._remove_parts()
            model, facts = made()
            staging = self.folder / f".{max(self._numbers(), default=0) + 1}{_PART}"
            staging.mkdir()
            model.write(staging)
            facts["digest"] = file_digest(staging / MODEL)
            same = [known for known in self.models() if known.digest == facts["digest"]]
            if same:
                shutil.rmtree(staging)
            else:
                write_json(staging / PUBLISHED, facts)
                same = [PublishedModel.read(_settle(staging))]
            self._point_to(same[-1].number)
            return same[-1]

    def models(self) -> list[PublishedModel]:
        """All that was published, oldest first."""
        return [PublishedModel.read(self.folder / str(number)) for number in self._numbers()]

    def current(self) -> PublishedModel:
        """The model to use; an error where there is none."""
        number = self.current_number()
        if number is None:
            raise UserError(
                f"{self.folder} has no current model", "publish a run into it: `fedrecplus publish RUN --registry DIR`"
            )
        return PublishedModel.read(self.folder / str(number))

    def current_number(self) -> int | None:
        """Which model is current, by a look at one small file; None in an empty registry."""
        try:
            return int((self.folder / CURRENT).read_text(encoding="ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.folder / CURRENT}: {error}", "say which model is current: `fedrecplus rollback NUMBER`"
            ) from None

    def rollback(self, number: int | None = None) -> PublishedModel:
        """Make an earlier model current: the one before the current one, or any by its number."""
        self.check_there()
        with self._alone():
            known = self._numbers()
            if number is None:
                now = self.current_number()
                earlier = [each for each in known if now is not None and each < now]
                if not earlier:
                    raise UserError(f"{self.folder} has no model before the current one", _listed(known))
                number = earlier[-1]
            if number not in known:
                raise UserError(f"{self.folder} has no model {number}", _listed(known))
            chosen = PublishedModel.read(self.folder / str(number))
            chosen.check()
            self._point_to(number)
            return chosen

    def check_there(self) -> None:
        """Refuse a folder that isn't there: nothing was ever published into it."""
        if not self.folder.is_dir():
            raise UserError(f"{self.folder}: no such registry", "give the folder that `fedrecplus publish` wrote to")

    @property
    def begun(self) -> bool:
        """Whether anything was ever published here."""
        return (self.folder / CURRENT).exists() or bool(self._numbers())

    def _numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return sorted(int(each.name) for each in self.folder.iterdir() if each.name.isdecimal() and each.is_dir())

    def _alone(self) -> contextlib.AbstractContextManager[None]:
        return locked(self.folder / _LOCK, str(self.folder), "wait until it is done", _PATIENCE)

    def _remove_parts(self) -> None:
        """What a killed publication left."""
        for each in self.folder.glob(f".*{_PART}"):
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    def _point_to(self, number: int) -> None:
        write_text(self.folder / CURRENT, f"{number}\n")
        _sync_folder(self.folder)


def finished_model(run: Path, allow: Collection[str]) -> tuple[SharedModel, dict[str, Any]]:
    """A finished run's model as it may be published, and what may be said of it; of one moment, though somebody trains
    there anew."""
    if not run.is_dir():
        raise UserError(f"{run}: no such folder", "give the folder that train wrote")
    result = RunFolder(run).result()
    model = SharedModel.read(run, allow)
    if RunFolder(run).result() != result:
        raise UserError(f"{run} changed meanwhile", "publish it when its training has ended")
    model = published_model(model, result)
    figures = {name: result.get(name) for name in _FIGURES}
    measured = {"rmse": result.get("rmse"), "mae": result.get("mae")}
    measured["ndcg@10"] = (result.get("ranking") or {}).get("ndcg@10")
    figures |= {name: published_figure(value) for name, value in measured.items()}
    if result.get("privacy"):  # whether all ratings are the same, a budget's noisy averages say
        figures["likes_alone"] = model.likes_alone
    figures["items"], figures["gives_away"] = len(model.item_ids), given_away(model, result)
    made = {name: (result.get("made") or {}).get(name) for name in _MADE}
    return model, {"when": datetime.now(UTC).isoformat(timespec="seconds"), "figures": figures, "made": made}


def _settle(staging: Path) -> Path:
    """Rename a written folder to its number; its files are read-only from then on."""
    for file in staging.iterdir():
        file.chmod(0o444)
    _sync_folder(staging)
    folder = staging.with_name(staging.name.removeprefix(".").removesuffix(_PART))
    staging.rename(folder)
    _sync_folder(folder.parent)
    return folder


def _sync_folder(folder: Path) -> None:
    """Names last, too, not only contents."""
    with contextlib.suppress(OSError):  # Windows opens no folders
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def digest_of(model: SharedModel) -> str:
    """The digest that a model has, or would have, in a registry."""
    with tempfile.TemporaryDirectory() as folder:
        model.write(Path(folder))
        return file_digest(Path(folder) / MODEL)


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "publish the run again") from None


def _listed(known: list[int]) -> str:
    return f"there are {', '.join(map(str, known))}" if known else "publish a run first"
