"""Whose rows of one round's sums are collinear: rows that nobody else in the cohort rated, which name their owner.

    python -m benchmarks.collinear --persons 12,50,100,200,400 --fewest 3,6

For each size of a cohort, two random cohorts of ML-100K with public counts of all its people. A person is found by two
rows or more in one direction, among rows that ``--fewest`` of the cohort are expected to have rated; 0: all rows of
three public ratings and more.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks._rank_one import collinear
from fedrecplus.config import assign, preset
from fedrecplus.data import Ratings, load
from fedrecplus.engines import engine_of, message_of, prepare, public_items

_OFF = 2e-4
"""radians that a row of one person may be off its direction; in 32 bits the ring's rounding is far below"""


def found_in_a_sum(
    everybody: Ratings, who: NDArray[np.int64], columns: int, fewest: Sequence[float]
) -> list[tuple[int, int]]:
    """How many are found in one round's sum over these people, and of how many rows, for each least number."""
    public = replace(public_items(everybody), source="public")
    wide = [f"model.interaction_factors={columns}", "channel.least_cohort=2", "channel.fewest_contributors=1"]
    config = assign(preset("fedrec+secure"), [*wide, "channel.bits=32"])  # 16 bits round what is collinear apart
    problem = prepare(everybody.where(np.isin(everybody.client_of_rating, who)), config, public)
    engine = engine_of(config)
    state = engine.start(problem)
    sums = engine.sums(problem, state.private, message_of(problem, state), problem.cohort(0))[0]
    W, expected = sums.total[:, -columns:], public.popularity * len(who) / everybody.clients
    found = []
    for least in fewest:
        enough = expected >= least if least else public.popularity >= 3
        rows = W[enough & W.any(axis=1)]
        found.append((len(collinear(rows, np.full(len(rows), _OFF))), len(rows)))
    return found


def main() -> None:
    """Print a line for each cohort."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", default="12,50,100,200,400")
    parser.add_argument("--fewest", default="0,3,6")
    parser.add_argument("--columns", type=int, default=32)
    given = parser.parse_args()
    everybody, rng = load("ml-100k"), np.random.default_rng(0)
    fewest = [float(least) for least in given.fewest.split(",")]
    for persons in map(int, given.persons.split(",")):
        for _ in range(2):
            who = rng.choice(everybody.clients, persons, replace=False)
            for least, (found, rows) in zip(fewest, found_in_a_sum(everybody, who, given.columns, fewest), strict=True):
                print(f"{persons} persons, fewest {least:g}: {found} found, {rows} rows", flush=True)


if __name__ == "__main__":
    main()
