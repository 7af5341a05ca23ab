"""What a public random projection of each round's sums costs: low-rank uploads, after CoLR.

    python -m benchmarks.projection --shares 1,0.5,0.25 --rounds 17,34

A client sends Δ·B for a public random B of the round, with fewer columns than either table has; the server steps in
that subspace alone. Sums are linear, so what the server has is the sum's own projection: it is taken here, after the
sum. `fedrec+secure` on fold 0 of ML-100K.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks._rank_one import unmixed
from fedrecplus.config import assign, preset
from fedrecplus.data import load, split
from fedrecplus.engines import engine_of, message_of, prepare, public_items
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.model.joint import Joint
from fedrecplus.protocol import PublicItems, Sums
from fedrecplus.training import train

_BYTES = 127.7e3
"""of a round's upload with all columns"""
_OPEN = ("channel.least_cohort=2", "channel.fewest_contributors=1", "channel.bits=32")
"""all rows are summed, however few people there are"""


def basis(name: bytes, columns: int, rank: int) -> Array:
    """Orthonormal columns that everybody draws alike."""
    seed = int.from_bytes(hashlib.sha256(name).digest()[:8], "big")
    drawn = np.random.default_rng(seed).normal(size=(columns, rank))
    return np.asarray(np.linalg.qr(drawn)[0])


def projected(gradient: Array, name: bytes, share: float, gain: float) -> Array:
    """What is left of a gradient of which a share of the columns was sent; ``gain`` 1/share makes it unbiased."""
    B = basis(name, gradient.shape[1], max(1, round(share * gradient.shape[1])))
    return np.asarray(gain * (gradient @ B) @ B.T)


UPDATE = Joint.update_items


def stepped(model: Joint[Any], sums: Sums, V: NDArray[Any], public: PublicItems, share: float, gain: float) -> Array:
    """The server's step by the part of the gradient that lies in the round's subspaces, of each table one.

    A row's step is linear in its sum, (Σ − c)·M: M and the sum c that would move nothing are found by trying.
    """

    def step(total: Array) -> Array:
        return UPDATE(model, replace(sums, total=total), V, public)

    none, units = step(np.zeros_like(sums.total)), np.eye(V.shape[1])
    M = np.stack([step(np.tile(unit, (len(V), 1))) - none for unit in units], axis=1)
    gradient = sums.total + np.linalg.solve(M.transpose(0, 2, 1), none[..., None])[..., 0]
    parts = zip(np.split(gradient, [model.settings.factors], axis=1), (b"V", b"W"), strict=True)
    kept = np.hstack([projected(part, name + V.tobytes(), share, gain) for part, name in parts])
    return np.asarray((kept[:, None, :] @ M)[:, 0])


def found(persons: int, share: float) -> tuple[int, int]:
    """How many of a cohort are found in one sum of all rows, by nine tenths of their items; and by chance."""
    everybody, rng = load("ml-100k"), np.random.default_rng(persons)
    who = rng.choice(everybody.clients, persons, replace=False)
    cohort = everybody.where(np.isin(everybody.client_of_rating, who))
    config = assign(preset("fedrec+secure"), [*_OPEN, "precision=float64"])
    problem, engine = prepare(cohort, config, replace(public_items(cohort), source="public")), engine_of(config)
    state = engine.start(problem)
    sums = engine.sums(problem, state.private, message_of(problem, state), problem.cohort(0))[0]
    W = sums.total[:, config.model.settings.factors :]
    assert isinstance(config.channel, RingChannel)
    rounding = config.channel.rounding_deviation(persons)
    A = unmixed(W @ basis(b"W", W.shape[1], max(1, round(share * W.shape[1]))), rounding)[1] != 0.0
    others = rng.choice(np.setdiff1d(np.arange(everybody.clients), who), persons, replace=False)
    named, chance = (sum(_is_named(A, everybody.of(p)[0]) for p in people.tolist()) for people in (who, others))
    return named, chance


def _is_named(A: NDArray[np.bool_], items: NDArray[Any]) -> bool:
    rated = np.zeros(A.shape[1], bool)
    rated[items] = True
    return bool(((A & rated).sum(axis=1) >= 0.9 * (A | rated).sum(axis=1)).any())


def main() -> None:
    """Print a line for each share of the columns, number of rounds and gain; with --persons, who is found in a sum."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shares", default="1,0.5,0.25")
    parser.add_argument("--rounds", default="17,34")
    parser.add_argument("--persons", default="", help="cohorts whose sums are taken apart instead")
    given = parser.parse_args()
    for persons in map(int, filter(None, given.persons.split(","))):
        for share in map(float, given.shares.split(",")):
            print(f"{persons} persons, {share:.2f} of the columns: found {found(persons, share)}", flush=True)
    if given.persons:
        return
    training, test = split(load("ml-100k"))
    for share in map(float, given.shares.split(",")):
        for rounds in map(int, given.rounds.split(",")):
            for gain in sorted({1.0, 1.0 / share}):
                Joint.update_items = functools.partialmethod(stepped, share=share, gain=gain)  # type: ignore[method-assign, assignment]
                run = train(training, test, assign(preset("fedrec+secure"), [f"server.rounds={rounds}"]))
                kilobytes, lists = share * _BYTES / 1e3, run.result["ranking"]["ndcg@10"]
                print(
                    f"{share:.2f} of the columns, {rounds} rounds, gain {gain:g}: RMSE {run.rmse:.4f}, "
                    f"NDCG@10 {lists:.4f}, {kilobytes:.0f} KB a round, {kilobytes * rounds / 1e3:.2f} MB in all",
                    flush=True,
                )


if __name__ == "__main__":
    main()
