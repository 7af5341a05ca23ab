"""What one honest sum says after a server told a false one, which moved W to where it wants it.

    python -m benchmarks.false_sums --persons 108,943

A server tells a sum that nobody made, within the range that devices check, so that all rows of W are zero but 22, each
long in a column of its own. Whoever rated such an item has a weight there, and nobody else does: the column of the next
honest sum is the lists of its raters. Devices refuse false sums that move rows of few raters (``never_summed``);
``--open`` shows what was read before they did. `fedrec+secure` on ML-100K, one round; the control lays the same columns
beside the lists of other people.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import preset
from fedrecplus.data import Ratings, load
from fedrecplus.engines import engine_of, message_of, prepare, public_items
from fedrecplus.parts.channel import never_summed

_LONG = 10.0
"""a row that is no further away than a table's may be"""
_STANDS_OUT = 0.15
"""of a column's largest number: what is greater was rated by a rater of its item"""


def columns_of(
    cohort: Ratings, everybody: Ratings, open_rows: bool, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The probed items, and W's part of an honest sum over a table that tells their raters apart."""
    public = replace(public_items(everybody), source="public", people=everybody.clients)
    config = preset("fedrec+secure")
    k, width = config.model.settings.factors, config.model.settings.interaction_factors
    problem, engine = prepare(cohort, config, public), engine_of(config)
    movable = np.full(len(public.popularity), True) if open_rows else ~never_summed(public, config.channel.settings)
    state = engine.start(problem)
    V = np.where(movable[:, None], 0.0, state.server.V)
    rarest = np.flatnonzero(movable)[np.argsort(public.popularity[movable], kind="stable")]
    expected = public.popularity[rarest] * cohort_size(cohort) / everybody.clients
    probes = rng.choice(rarest[np.argsort(np.abs(expected - 1.0), kind="stable")][:100], width, replace=False)
    V[probes, k + np.arange(width)] = _LONG
    state = replace(state, server=replace(state.server, V=V.astype(engine.dtype)))
    sums = engine.sums(problem, state.private, message_of(problem, state), problem.cohort(0))[0]
    return probes, sums.total[:, k:]


def cohort_size(cohort: Ratings) -> int:
    """Who has rated anything."""
    return int(np.count_nonzero(np.diff(cohort.indptr)))


def read_lists(probes: NDArray[Any], W: NDArray[Any]) -> list[set[int]]:
    """What the server takes for a list: the rows that stand out in each column."""
    columns = np.abs(W)
    columns[probes] = 0.0
    return [set(np.flatnonzero(one > _STANDS_OUT * one.max()).tolist()) for one in columns.T]


def score(
    named: list[set[int]], probes: NDArray[Any], lists: dict[int, set[int]], others: dict[int, int] | None
) -> tuple[int, float, float]:
    """Columns that are nine tenths one person's list; the best person's share of a column, and of their items, on
    average. With ``others`` each rater stands for somebody else."""
    best = []
    for items, probe in zip(named, probes.tolist(), strict=True):
        raters = [person for person, rated in lists.items() if probe in rated]
        people = raters if others is None else [others[person] for person in raters]
        hits = [(len(items & lists[p]) / max(len(items), 1), len(items & lists[p]) / len(lists[p])) for p in people]
        best.append(max(hits, default=(0.0, 0.0)))
    precision, recall = np.array(best).T
    return int(np.sum(precision >= 0.9)), float(precision.mean()), float(recall.mean())


def main() -> None:
    """Print a line for each cohort and control."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--persons", default="108,943")
    parser.add_argument("--open", action="store_true", help="move rows of few raters, too")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    everybody, rng = load("ml-100k"), np.random.default_rng(0)
    rater = np.repeat(np.arange(everybody.clients), np.diff(everybody.indptr))
    for persons in map(int, given.persons.split(",")):
        found, control = [], []
        for _ in range(given.times):
            who = rng.choice(everybody.clients, persons, replace=False)
            lists = {int(p): set(everybody.of(p)[0].tolist()) for p in who}
            others = dict(zip(who.tolist(), np.roll(who, 1).tolist(), strict=True))
            probes, W = columns_of(everybody.where(np.isin(rater, who)), everybody, given.open, rng)
            named = read_lists(probes, W)
            found.append(score(named, probes, lists, None))
            control.append(score(named, probes, lists, others))
        for name, rows in (("read", found), ("control", control)):
            one, precision, recall = np.mean(rows, axis=0)
            print(f"{persons} persons, {name}: {one:.1f} of 22 columns one person's, {precision:.3f}, {recall:.3f}")


if __name__ == "__main__":
    main()
