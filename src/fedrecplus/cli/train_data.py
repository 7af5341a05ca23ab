"""Which ratings ``fedrecplus train`` trains and tests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedrecplus.cli.options import load_with_bar, split_of, with_test
from fedrecplus.data import (
    FileOptions,
    Ratings,
    ShardedRatings,
    Split,
    added,
    is_shard_folder,
    open_shards,
    split,
    without,
)
from fedrecplus.errors import UserError
from fedrecplus.training import RunFolder

FOLDS = 5


@dataclass(frozen=True)
class Data:
    """As ``data.json`` keeps it so that a run can be resumed, or gone on from, by its folder alone."""

    dataset: str
    fold: int | None
    """None: train on everything, test on nothing"""
    folds: int
    options: FileOptions
    split: Split
    test: str | None
    """a file to test on"""
    add: tuple[str, ...] = ()
    """files of ratings that came later: they are trained on, whatever the fold"""
    without: tuple[str, ...] = ()
    """people whose ratings are taken out"""

    def to_dict(self) -> dict[str, Any]:
        """For ``data.json``."""
        options = {**asdict(self.options), "items": _absolute(self.options.items)}
        data: dict[str, Any] = {"dataset": _absolute(self.dataset), "folds": self.folds, "split": str(self.split)}
        data |= {"options": options, "add": list(map(_absolute, self.add)), "without": list(self.without)}
        return data if self.test is None else {**data, "test": _absolute(self.test)}

    def parts(self, seed: int) -> tuple[Ratings, Ratings | None]:
        """What is trained on, and what is tested on."""
        training = with_test(load_with_bar(self.dataset, self.options), self.test, self.options)
        test = None
        if self.fold is not None:
            training, test = split(training, self.fold, self.folds, seed, self.split)
        if self.add:
            from fedrecplus.data import read_file  # here: it brings polars, which a known set goes without
        for name in self.add:
            columns = replace(self.options, scale=training.scale, listed=False)
            training = added(training, read_file(Path(name).expanduser(), columns, few=True))
        if self.without:
            training, test = without(training, self.without), test and _of_others(test, self.without)
        return training, test

    def shards(self) -> ShardedRatings:
        """The same in shards, which nothing is added to."""
        if self.add or self.without:
            raise UserError("--add and --without change ratings that are read as a whole", "write the shards anew")
        return open_shards(self.dataset, self.fold)


@dataclass(frozen=True)
class Asked:
    """What a command line says of the ratings."""

    dataset: str | None
    fold: int | None
    full: bool
    options: FileOptions
    how: str | None
    test: str | None
    add: str | None
    without: tuple[str, ...]

    def data(self, began: RunFolder | None, *, resumed: bool) -> Data:
        """What isn't said is taken from the run that is resumed, or gone on from: there more is added or taken out."""
        noted: dict[str, Any] = began.data() if began else {"fold": 0}
        chosen = None if self.full else noted.get("fold", 0) if self.fold is None else self.fold
        if self.full and self.test is not None:
            raise UserError("--full tests on nothing, --test names what to test on", "give one of them")
        add, gone = ((), ()) if resumed else (() if self.add is None else (self.add,), self.without)
        folds = noted.get("folds", FOLDS)
        if self.dataset is not None:
            scheme = split_of(self.how, self.options, self.test)
            return Data(self.dataset, chosen, folds, self.options, scheme, self.test, add, gone)
        if "dataset" not in noted:
            remedy = "give --dataset NAME-OR-FILE, such as --dataset ml-100k; or --resume with the --out of a run"
            raise UserError("no data set is given", remedy)
        if "fold" not in noted:
            raise UserError("a deployed run's ratings are on its devices", "name others: --dataset NAME-OR-FILE")
        options = FileOptions(**noted.get("options", {}))
        self._check_kept(noted, options, resumed=resumed)
        if self.options.items is not None and not resumed:  # of the items that came, too
            options = replace(options, items=self.options.items, listed=self.options.listed)
        add, gone = (*noted.get("add", ()), *add), (*noted.get("without", ()), *gone)
        scheme = Split.parse(noted.get("split", "random"))
        return Data(noted["dataset"], chosen, folds, options, scheme, noted.get("test"), add, gone)

    def _check_kept(self, noted: dict[str, Any], options: FileOptions, *, resumed: bool) -> None:
        """Refuse what says otherwise than the run: its test ratings must stay those that no table was trained on."""
        known = replace(options, items=None, listed=False)
        asked = {
            "--fold": self.fold in (None, noted["fold"]),
            "--split": self.how is None or str(Split.parse(self.how)) == noted.get("split"),
            "--test": self.test is None or _absolute(self.test) == noted.get("test"),
            "options of files": replace(self.options, items=None, listed=False) in (FileOptions(), known),
            "--add": not resumed or self.add is None or _absolute(self.add) in noted.get("add", ()),
            "--without": not resumed or set(self.without) <= set(noted.get("without", ())),
        }
        for option in (name for name, same in asked.items() if not same):
            raise UserError(
                f"{option}: the run's own ratings, and how they were cut, stay as they were",
                "leave it out; --dataset gives other ratings, --from goes on with more or fewer",
            )


def _of_others(test: Ratings, people: tuple[str, ...]) -> Ratings:
    """Test ratings of those who stay; who leaves may have none there."""
    known = set(test.client_ids.astype(str).tolist())
    leaving = [person for person in people if person in known]
    return without(test, leaving)


def _absolute(name: str | None) -> str | None:
    """A file's whole path, so that a run can be resumed from another folder; a data set's name as it is."""
    path = Path(name or "").expanduser()
    return str(path.resolve()) if path.is_file() or is_shard_folder(path) else name
