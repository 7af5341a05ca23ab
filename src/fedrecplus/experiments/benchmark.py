"""Benchmarks that papers use, each by its name: data, split, what is measured, and who is set beside whom."""

from __future__ import annotations

import csv
import importlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fedrecplus.config import LEAKY as LEAKS, Config, assign, preset
from fedrecplus.data import LIKES, FileOptions, Ratings, Scale, Split, concatenate, load, split
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.baselines import (
    OutsidePredictor,
    ease,
    ease_by_recency,
    ials,
    installed,
    myfm,
    recent_popularity,
    svdpp,
)
from fedrecplus.experiments.trivial import bias_only, global_mean
from fedrecplus.training import (
    Candidates,
    Fallback,
    Predictor,
    choose,
    predictor_for,
    ranking,
    sampled_ranking,
    score,
    train,
)

NEGATIVES = 99
RATINGS_OF, LISTS_OF = "RMSE", "HR@10 and NDCG@10"
_ALL = 1.0
"""in lists of these protocols every test item is relevant, whatever its rating"""
Fit = Callable[[Ratings], Predictor]


@dataclass(frozen=True)
class Benchmark:
    """A data set, a split of it, and what is measured."""

    name: str
    summary: str
    measure: str
    how: str
    """the split, as ``--split`` has it"""
    dataset: str
    """a known set, or a file's name"""
    needs: str = ""
    """a second file's name: what is tested on"""
    source: str = ""
    """where its files come from"""
    test_column: str | None = None
    folds: int = 5
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """settings of centralised peers that differ from the usual ones"""


_MONTI: dict[str, Any] = {
    "measure": RATINGS_OF,
    "how": "column",
    "source": "github.com/riannevdberg/gc-mc (data/douban, flixster, yahoo_music), as CSV: user,item,rating,test",
    "test_column": "test",
}
_U1: dict[str, Any] = {"needs": "ml-100k-u1-test.csv", "source": "GroupLens' ml-100k.zip (u1.test), as CSV: user,item"}
_NCF: dict[str, Any] = {
    "needs": "ml-1m-ncf-test.csv",
    "source": "github.com/hexiangnan/neural_collaborative_filtering (Data/ml-1m.test.*), as CSV: user,item,negatives",
    "peers": {"iALS": {"factors": 192}},
}
_LISTED = (
    Benchmark("ml-100k-u1", "GroupLens' own split u1 of ML-100K", RATINGS_OF, "column", "ml-100k", **_U1),
    Benchmark("ml-1m-90", "ML-1M, a random tenth is tested on", RATINGS_OF, "random", "ml-1m", folds=10),
    Benchmark("monti-douban", "Douban, 3,000 × 3,000, Monti's split", dataset="monti-douban.csv", **_MONTI),
    Benchmark("monti-flixster", "Flixster, 3,000 × 3,000, Monti's split", dataset="monti-flixster.csv", **_MONTI),
    Benchmark("monti-yahoo", "YahooMusic, 3,000 × 3,000, Monti's split", dataset="monti-yahoo-music.csv", **_MONTI),
    Benchmark("ncf-ml-1m", "ML-1M, each person's last rating, NCF's negatives", LISTS_OF, "column", "ml-1m", **_NCF),
    Benchmark("ml-100k-last", "ML-100K, each person's last rating, 99 drawn", LISTS_OF, "last:1", "ml-100k"),
)
BENCHMARKS = {one.name: one for one in _LISTED}
RATING_PRESETS = ("fedrec+secure", "fedmf", "fedrec+", "fedrec-hf")
LIST_PRESETS = ("fedrec+secure", "fcf", "fedncf", "pfedrec", "fedrap", "fedrecon")
LEAKY = ("pfedrec", "fedrap")
"""models whose released code never draws the test item as a negative"""


@dataclass(frozen=True)
class BenchmarkTask:
    """One seed's ratings, cut, and fixed negatives where the benchmark has them."""

    training: Ratings
    test: Ratings
    seed: int
    negatives: Candidates | None = None
    how: str = "random"
    """the split, as ``--split`` has it"""


def benchmark_named(name: str) -> Benchmark:
    """A benchmark, or an error with the names that there are."""
    if name not in BENCHMARKS:
        raise unknown_name("benchmark", name, BENCHMARKS)
    return BENCHMARKS[name]


def task_of(benchmark: Benchmark, seed: int, folder: Path | None) -> BenchmarkTask:
    """The ratings of a seed, from files in ``folder`` where they are no set known by name."""
    options = FileOptions(test=benchmark.test_column)
    ratings = _ratings(benchmark, options, folder)
    negatives = None
    if benchmark.needs:
        path = _file(benchmark.needs, folder, benchmark.source)
        held_out = pl.read_csv(path, infer_schema_length=0)
        ratings = concatenate(ratings, load(held_out.select("user", "item").cast(pl.Int64), like=ratings))
        negatives = _given(ratings, held_out) if "negatives" in held_out.columns else None
    scheme = Split.parse(benchmark.how)
    training, test = split(ratings, 0, benchmark.folds, seed, scheme)
    return BenchmarkTask(training, test, seed, negatives, benchmark.how)


def _ratings(benchmark: Benchmark, options: FileOptions, folder: Path | None) -> Ratings:
    """A known set, or a file; of ML-1M the file where it lies in the folder, with its films beside."""
    own = _found(f"{benchmark.dataset}.csv", folder)
    if benchmark.dataset.endswith(".csv"):
        return load(str(_file(benchmark.dataset, folder, benchmark.source)), options=options)
    if own is None:
        return load(benchmark.dataset)
    films = _found(f"{benchmark.dataset}-movies.dat", folder)
    ratings = load(str(own), options=replace(options, items=None if films is None else str(films)))
    return replace(ratings, name=benchmark.dataset)


def _file(name: str, folder: Path | None, source: str) -> Path:
    path = _found(name, folder)
    if path is None:
        raise UserError(
            f"{name} is not in {folder or Path()}",
            f"get it from {source}, and name its folder: --data FOLDER, or FEDRECPLUS_DATA",
        )
    return path


def _found(name: str, folder: Path | None) -> Path | None:
    places = [Path(place).expanduser() for place in (folder, os.environ.get("FEDRECPLUS_DATA")) if place] or [Path()]
    return next((path for place in places for path in (place / name, place / f"{name}.gz") if path.is_file()), None)


def _given(ratings: Ratings, held_out: pl.DataFrame) -> Candidates:
    """The file's negatives by client number; −1 for an item that nobody has rated."""
    clients = {str(name): number for number, name in enumerate(ratings.client_ids.tolist())}
    items = {str(name): number for number, name in enumerate(ratings.item_ids.tolist())}
    table = np.full((ratings.clients, NEGATIVES), -1, dtype=np.int64)
    for user, text in held_out.select("user", "negatives").iter_rows():
        numbers = [items.get(name, -1) for name in text.split()]
        table[clients[user], : len(numbers)] = numbers
    return table


def systems(benchmark: Benchmark) -> dict[str, Callable[[BenchmarkTask], dict[str, Any]]]:
    """What is run, by name: the default, our presets and the family, and centralised peers that are installed."""
    lists = benchmark.measure == LISTS_OF
    ours = {"default": _default} | ({"default as clicks": _as_clicks} if lists else {})
    presets = {name: _of_preset(name) for name in (LIST_PRESETS if lists else RATING_PRESETS)}
    peers: dict[str, Fit] = {"popularity": global_mean, "EASE": ease, "iALS": ials} if lists else {"biases": bias_only}
    if not lists:
        peers |= {"Surprise's SVD++": svdpp} if installed("surprise") else {}
        peers |= {"myFM": myfm} if installed("myfm") else {}
    if Split.parse(benchmark.how).kind == "last":  # whose order is known
        peers |= {"recent popularity": recent_popularity, "EASE by recency": ease_by_recency}
        peers |= {"SASRec": _sasrec} if installed("torch") else {}
    if benchmark.name == "ml-100k-last":
        presets |= {name + LEAKS: _of_preset(name, leaky=True) for name in LEAKY}
    return {**ours, **presets, **{name: _of_peer(fit, benchmark.peers.get(name, {})) for name, fit in peers.items()}}


def _default(task: BenchmarkTask) -> dict[str, Any]:
    began = time.perf_counter()
    choice = choose(task.training, task.seed, task.how)
    row = _trained(task, choice.config)
    spent = {"kb_up": row["kb_up"] + choice.bytes_up / 1000, "seconds": time.perf_counter() - began}
    return {**row, "choice": choice.why, **spent}


def _as_clicks(task: BenchmarkTask) -> dict[str, Any]:
    """The same, told what was rated and not how."""
    clicks = replace(task.training, scale=Scale.parse(LIKES), codes=np.ones_like(task.training.codes))
    tested = replace(task.test, scale=clicks.scale, codes=np.ones_like(task.test.codes))
    return _default(replace(task, training=clicks, test=tested))


def _of_preset(name: str, *, leaky: bool = False) -> Callable[[BenchmarkTask], dict[str, Any]]:
    changes = ["model.leaky_negatives=true", "simulation_only=true"] if leaky else []
    return lambda task: _trained(task, assign(preset(name), [f"seed={task.seed}", *changes]))


def _trained(task: BenchmarkTask, config: Config) -> dict[str, Any]:
    began = time.perf_counter()
    run = train(task.training, task.test if config.model.leaks else None, config)
    return {
        "algorithm": config.algorithm,
        "sees": "every upload" if config.channel.VIEW == "uploads" else "sums",
        "kb_up": run.result["bytes_up_per_client_round"] * run.result["rounds"] / 1000,
        "seconds": time.perf_counter() - began,
        **_figures(task, *predictor_for(run.recommender, task.training, task.test)),
    }


def _sasrec(training: Ratings) -> Predictor:
    """Here, since it imports torch, which is an extra."""
    return importlib.import_module("fedrecplus.experiments.sasrec").sasrec(training)  # type: ignore[no-any-return]


def _of_peer(fit: Callable[..., Predictor], settings: dict[str, Any]) -> Callable[[BenchmarkTask], dict[str, Any]]:
    def run(task: BenchmarkTask) -> dict[str, Any]:
        began = time.perf_counter()
        predictor = fit(task.training, **settings)
        seconds = time.perf_counter() - began
        figures = _figures(task, predictor, Fallback.of(task.training).knowing_everything())
        return {"sees": "all ratings", "kb_up": None, "seconds": seconds, **figures}

    return run


def _figures(task: BenchmarkTask, predictor: Predictor, fallback: Fallback) -> dict[str, Any]:
    likes = task.training.likes_alone
    rmse = None if likes or predictor.Z is predictor.W else score(task.test, predictor.predict, fallback).rmse
    if isinstance(predictor, OutsidePredictor):  # it would be asked for every pair
        return {"rmse": rmse, "full_ndcg": None}
    judged = (task.training, task.test, predictor, fallback)
    sampled = sampled_ranking(*judged, NEGATIVES, task.seed, task.negatives)
    return {"rmse": rmse, "full_ndcg": ranking.rank(*judged, (10,), _ALL)["ndcg@10"], **sampled}


def published_for(name: str) -> list[dict[str, str]]:
    """What others report, with protocol and source."""
    text = files(__package__).joinpath("benchmarks.csv").read_text(encoding="utf-8")
    return [row for row in csv.DictReader(text.splitlines()) if row["benchmark"] == name]


def mean_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One system's figures over seeds: means of numbers, the first of words."""
    first = rows[0]
    numbers = {
        key: float(np.mean([row[key] for row in rows]))
        for key, value in first.items()
        if isinstance(value, int | float) and all(row.get(key) is not None for row in rows)
    }
    return {**first, **numbers}
