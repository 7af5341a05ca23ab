"""Whose rows of one round's sums are collinear: rows that nobody else in the cohort rated, which name their owner.

    python -m benchmarks.collinear --persons 12,50,100,200,400 --fewest 3,6

For each size of a cohort, two random cohorts of ML-100K with public counts of all its people. A person is found by two
rows or more in one direction, among rows that ``--fewest`` of the cohort are expected to have rated; 0: all rows of
three public ratings and more.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from fedrecplus.audit.attacks._rank_one import collinear
from fedrecplus.config import assign, preset
from fedrecplus.data import load
from fedrecplus.engines import engine_of, message_of, prepare, public_items

_OFF = 2e-4
"""radians that a row of one person may be off its direction; in 32 bits the ring's rounding is far below"""


def main() -> None:
    """Print a line for each cohort."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", default="12,50,100,200,400")
    parser.add_argument("--fewest", default="0,3,6")
    parser.add_argument("--columns", type=int, default=32)
    given = parser.parse_args()
    everybody, rng = load("ml-100k"), np.random.default_rng(0)
    public = replace(public_items(everybody), source="public")
    wide = [f"model.interaction_factors={given.columns}", "channel.least_cohort=2", "channel.fewest_contributors=1"]
    config = assign(preset("fedrec+secure"), [*wide, "channel.bits=32"])  # 16 bits round what is collinear apart
    for persons in map(int, given.persons.split(",")):
        for _ in range(2):
            who = rng.choice(everybody.clients, persons, replace=False)
            rated = np.isin(np.repeat(np.arange(everybody.clients), np.diff(everybody.indptr)), who)
            problem, engine = prepare(everybody.where(rated), config, public), engine_of(config)
            state = engine.start(problem)
            sums = engine.sums(problem, state.private, message_of(problem, state), problem.cohort(0))[0]
            W, expected = sums.total[:, -given.columns :], public.popularity * persons / everybody.clients
            for fewest in map(float, given.fewest.split(",")):
                enough = expected >= fewest if fewest else public.popularity >= 3
                kept = np.flatnonzero(enough & W.any(axis=1))
                found = len(collinear(W[kept], np.full(len(kept), _OFF)))
                print(f"{persons} persons, fewest {fewest:g}: {found} found, {len(kept)} rows", flush=True)


if __name__ == "__main__":
    main()
