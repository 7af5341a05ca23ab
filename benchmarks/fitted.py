"""`fedrec+secure` on splits of the field: ``python -m benchmarks.fitted --data FOLDER [--only NAME,…] [--set …]``.

FOLDER has the files that the functions below name; ML-100K is the package's own. A line of JSON for each training.
Settings are those of the preset: what validation chose is in each line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import fedrecplus as fr
from fedrecplus.config import assign, preset
from fedrecplus.data.splits import split
from fedrecplus.training.loop import train
from fedrecplus.training.run import Run

COLUMNS = ("user", "item", "rating")
Parts = tuple[Any, ...]
"""ratings to train on, to test on, and for each person an item and its negatives"""


def monti(folder: Path, name: str) -> Iterator[Parts]:
    """The fixed splits of Monti et al. 2017."""
    ratings = pl.read_csv(folder / f"monti-{name}.csv.gz")
    yield *(ratings.filter(pl.col("test") == part).select(COLUMNS) for part in (0, 1)), None


def movielens_1m(folder: Path) -> fr.Ratings:
    """The whole set, with genres and years."""
    lines = (folder / "ml-1m-movies.dat").read_text("latin-1").splitlines()
    rows = [line.split("::") for line in lines]
    films = pl.DataFrame(
        {
            "item": [int(row[0]) for row in rows],
            "title": [row[1] for row in rows],
            "genres": [row[2] for row in rows],
        }
    )
    return fr.from_frame(pl.read_csv(folder / "ml-1m.csv.gz"), items=films, name="ml-1m")


def five_folds(ratings: fr.Ratings) -> Iterator[Parts]:
    """Five random folds of a fifth."""
    yield from ((*split(ratings, fold), None) for fold in range(5))


def nine_to_one(ratings: fr.Ratings) -> Iterator[Parts]:
    """A tenth to test on, by five seeds."""
    yield from ((*split(ratings, 0, 10, seed), None) for seed in range(5))


def u1(folder: Path) -> Iterator[Parts]:
    """GroupLens' own split of ML-100K."""
    ratings, pairs = fr.load("ml-100k"), pl.read_csv(folder / "ml-100k-u1-test.csv.gz")
    test = _marked(ratings, pairs)
    yield ratings.where(~test), ratings.where(test), None


def ncf(folder: Path) -> Iterator[Parts]:
    """Each user's last rating among 99 unrated items. After: He et al. 2017"""
    ratings, ranked = movielens_1m(folder), pl.read_csv(folder / "ml-1m-ncf-test.csv.gz")
    test = _marked(ratings, ranked.select(ranked.columns[:2]))
    yield ratings.where(~test), ratings.where(test), ranked


def _marked(ratings: fr.Ratings, pairs: pl.DataFrame) -> np.ndarray:
    """Which ratings are among pairs of a user and an item."""
    own = ratings.client_ids[ratings.client_of_rating].astype(np.int64) * 10**6
    own = own + ratings.item_ids[ratings.items].astype(np.int64)
    user, item = (pairs.to_series(place).to_numpy().astype(np.int64) for place in (0, 1))
    return np.isin(own, user * 10**6 + item)


TABLES: dict[str, Callable[[Path], Iterator[Parts]]] = {
    "flixster": lambda folder: monti(folder, "flixster"),
    "douban": lambda folder: monti(folder, "douban"),
    "yahoo-music": lambda folder: monti(folder, "yahoo-music"),
    "u1": u1,
    "ml-100k": lambda _: five_folds(fr.load("ml-100k")),
    "ml-1m-90": lambda folder: nine_to_one(movielens_1m(folder)),
    "ml-1m": lambda folder: five_folds(movielens_1m(folder)),
    "ncf": ncf,
}


def among_negatives(run: Run, ranked: pl.DataFrame) -> dict[str, float]:
    """HR@10 and NDCG@10 of each person's item among its negatives."""
    model, private = run.recommender.model, run.recommender.clients
    clients = {int(name): place for place, name in enumerate(private.client_ids.tolist())}
    items = {int(name): place for place, name in enumerate(model.item_ids.tolist())}
    assert private.Z is not None
    places = []
    for user, item, negatives in ranked.select("user", "item", "negatives").iter_rows():
        others = [items[int(other)] for other in negatives.split() if int(other) in items]
        scores = model.X[[items[item], *others]] @ private.Z[clients[user]]
        places.append(int((scores[1:] >= scores[0]).sum()))
    rank = np.array(places)
    gains = np.where(rank < 10, 1.0 / np.log2(rank + 2.0), 0.0)
    return {"hr@10": float((rank < 10).mean()), "ndcg@10": float(gains.mean())}


def main() -> None:
    """Print a line for each training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--set", action="append", default=[], dest="settings")
    options = parser.parse_args()
    config = assign(preset("fedrec+secure"), options.settings)
    for name in options.only.split(","):
        for number, (training, test, ranked) in enumerate(TABLES[name](options.data)):
            began = time.perf_counter()
            run = train(training, test, config)
            line = {"table": name, "number": number, "rmse": run.result["rmse"], "ndcg@10": run.ranking["ndcg@10"]}
            line |= {"sampled": among_negatives(run, ranked)} if ranked is not None else {}
            line |= {"KB up": run.result["bytes_up_per_client_round"] / 1000, "chosen": run.result["chosen"]}
            print(json.dumps({**line, "seconds": time.perf_counter() - began, "set": options.settings}), flush=True)


if __name__ == "__main__":
    main()
