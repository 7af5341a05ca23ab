"""Ratings as they came: train up to a month or a week, predict the next, go on. ``python -m benchmarks.replay``.

In every period but the first, three models predict the ratings of the next one: the model of the period before
(``stale``), the same after going on with what came since (``gone on``), and one that is trained anew. All are judged by
folding everybody in with what they had rated until then, as a device does. Whoever has rated nothing until then is left
out: no training helps there.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fedrecplus as fr
from fedrecplus.data.adding import rated_alone
from fedrecplus.markdown import markdown_table
from fedrecplus.training.warm_start import continued

_DAY = 86_400
MODELS = ("anew", "gone on", "stale")


@dataclass(frozen=True)
class Judged:
    """Of one model, in one period."""

    rmse: float
    ratings: int
    ndcg: float
    people: int
    rounds: int
    kilobytes: float
    """that a client sent in all rounds"""


def periods(ratings: fr.Ratings, by: str) -> NDArray[np.int64]:
    """The number of each rating's calendar month, or of its week since the first."""
    assert ratings.timestamps is not None
    times = ratings.timestamps.astype(np.int64)
    if by == "week":
        return np.asarray((times - times.min()) // (7 * _DAY))
    return np.asarray(times.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64))


def replay(
    ratings: fr.Ratings, config: fr.Config, by: str, first: int, last: int
) -> Iterator[tuple[int, list[Judged]]]:
    """The models of every period but the first, judged by the next."""
    ratings, number = replace(ratings, listed=False), periods(ratings, by)  # items come with their first rating
    run: fr.Run | None = None
    for until, upcoming in pairwise(np.unique(number)[first : last + 1].tolist()):
        now, later = rated_alone(ratings.where(number <= until)), ratings.where(number == upcoming)
        anew, stale = fr.train(now, None, config), run
        if stale is None:
            run = anew
            continue
        settings = continued(stale.recommender.model, stale.config, again=stale.config != config)
        run = fr.train(now, None, settings, start=stale)
        yield upcoming, [judged(one, now, later) for one in (anew, run, stale)]


def judged(run: fr.Run, now: fr.Ratings, later: fr.Ratings) -> Judged:
    """The model by itself, with everybody folded in."""
    later = later.where(np.isin(later.client_ids, now.client_ids)[later.client_of_rating])
    found = fr.evaluate(fr.Recommender.for_newcomers(run.recommender.model), now, later, at=(10,))
    rounds = int(run.result["rounds"])
    sent = run.result["bytes_up_per_client_round"] * rounds / 1000
    rmse, ndcg = found["rmse"], found["ndcg@10"]
    assert rmse is not None
    assert ndcg is not None
    return Judged(rmse, len(later), ndcg, found.ranking["clients"], rounds, sent)


def mean(rows: list[Judged]) -> list[str]:
    """Over all periods: the error over ratings, lists over people."""
    error = np.average([row.rmse for row in rows], weights=[row.ratings for row in rows])
    lists = np.average([row.ndcg for row in rows], weights=[row.people for row in rows])
    rounds, sent = (np.mean([getattr(row, name) for row in rows]) for name in ("rounds", "kilobytes"))
    return [f"{error:.4f}", f"{lists:.4f}", f"{rounds:g}", f"{sent:,.0f}"]


def main() -> None:
    """A line per period, and the means."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    parser.add_argument("--dataset", default="ml-100k", help="a known set or a file with times")
    parser.add_argument("--by", choices=("month", "week"), default="month")
    parser.add_argument(
        "--first", type=int, default=2, help="number of the period, from 0, that the first training ends with"
    )
    parser.add_argument("--last", type=int, default=10**6, help="number of the last period")
    parser.add_argument("--algorithm", default="fedrec+secure")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    asked: Any = parser.parse_args()
    config = fr.assign(fr.preset(asked.algorithm), asked.settings)
    by_model: dict[str, list[Judged]] = {name: [] for name in MODELS}
    for upcoming, rows in replay(fr.load(asked.dataset), config, asked.by, asked.first, asked.last):
        for name, row in zip(MODELS, rows, strict=True):
            by_model[name].append(row)
        print(
            f"{asked.by} {upcoming}: {rows[0].ratings:,} ratings, {rows[0].people} people's lists;", flush=True, end=" "
        )
        print(
            "; ".join(f"{name} {row.rmse:.4f} {row.ndcg:.4f}" for name, row in zip(MODELS, rows, strict=True)),
            flush=True,
        )
    lines = [[name, *mean(rows)] for name, rows in by_model.items()]
    print(markdown_table([asked.algorithm, "RMSE", "NDCG@10", "rounds", "KB up"], lines))


if __name__ == "__main__":
    main()
