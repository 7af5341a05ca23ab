"""People leave: how many rounds without them until a model tells nothing of them? ``python -m benchmarks.forgetting``.

People are dealt out into those who leave, as many who were never there, and the rest. One world trains with the
leaving, and then goes on without; the other never had them. After every number of rounds:

- how far predictions for the rest are apart in the two worlds, beside those of another seed, which knew nobody either;
- how well attackers tell the leaving from who was never there (the area under the curve; .5 is a guess). The attacker
  knows all ratings of both, and everybody else's, so it has the world without them to compare with. ``fit``: their
  ratings are predicted better than in that world. ``lean``: the table leans from that world's towards what they would
  have sent. ``both models``: the table of before leans the same way from the one of now.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

import fedrecplus as fr
from fedrecplus.arrays import Array, Items
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.markdown import markdown_table
from fedrecplus.randomness import uniform
from fedrecplus.training.model_files import SharedModel
from fedrecplus.training.warm_start import continued

ROUNDS = (0, 1, 2, 3, 5, 8, 17)


class People(NamedTuple):
    """By client number."""

    leaving: Items
    strangers: Items
    staying: Items


def dealt(ratings: fr.Ratings, leaving: int, seed: int) -> People:
    """By a keyed draw."""
    order = np.argsort(uniform(seed, np.arange(ratings.clients)), kind="stable")
    return People(order[:leaving], order[leaving : 2 * leaving], order[2 * leaving :])


def of(ratings: fr.Ratings, *people: Items) -> fr.Ratings:
    """Their ratings; everybody keeps their number."""
    return ratings.where(np.isin(ratings.client_of_rating, np.concatenate(people)))


def gone_on(run: fr.Run, ratings: fr.Ratings, rounds: int, momentum: float) -> SharedModel:
    """The model after so many rounds more."""
    if rounds == 0:
        return run.recommender.model
    config = fr.assign(continued(run.recommender.model, run.config), [f"server_optimizer.momentum={momentum}"])
    config = replace(config, server=msgspec.structs.replace(config.server, rounds=rounds))
    return fr.train(ratings, None, config, start=run).recommender.model


def aligned(table: Array, like: Array, blocks: list[slice]) -> Array:
    """The table with each block of columns turned to lie as near as can be: models are the same but for turns."""
    turned = table.astype(np.float64).copy()
    for block in blocks:
        left, _, right = np.linalg.svd(table[:, block].T @ like[:, block])
        turned[:, block] = table[:, block] @ left @ right
    return turned


def would_send(ratings: fr.Ratings, model: SharedModel, people: Items) -> list[tuple[Items, Array]]:
    """Items and rows of what each would send in a round with this model."""
    config = replace(fr.with_channel(model.config, "clear"), simulation_only=True)
    problem = prepare(ratings, config, public=model.public)
    engine = engine_of(config)
    state = engine.start(problem)
    state = replace(state, server=replace(state.server, V=model.V.astype(state.server.V.dtype), round=1))
    uploads, _ = engine.uploads(problem, state.private, message_of(problem, state), np.sort(people))
    by_client = {upload.client: (upload.items, upload.delta) for upload in uploads}
    return [by_client[person] for person in people.tolist()]


def lean(away: Array, sent: list[tuple[Items, Array]]) -> Array:
    """How far a change of the table points to what each would send, by the length of that."""
    return np.array([(away[items] * rows).sum() / max(float(np.linalg.norm(rows)), 1e-12) for items, rows in sent])


def fit(ratings: fr.Ratings, model: SharedModel, people: Items) -> Array:
    """Minus the mean squared error of each person's ratings, folded in."""
    found = []
    for person in people.tolist():
        items, own = ratings.of(person)
        found.append(-float(np.mean((model.X[items] @ model.fold_in(items, own) - own) ** 2)))
    return np.array(found)


def area(positive: Array, negative: Array) -> float:
    """Under the ROC curve."""
    return float((positive[:, None] > negative).mean() + 0.5 * (positive[:, None] == negative).mean())


def apart(ratings: fr.Ratings, one: SharedModel, other: SharedModel, people: Items) -> float:
    """Root mean square of how far two models' predictions of all items are apart, over some people."""
    differences = []
    for person in people[:200].tolist():
        items, own = ratings.of(person)
        differences.append(one.X @ one.fold_in(items, own) - other.X @ other.fold_in(items, own))
    return float(np.sqrt(np.mean(np.square(differences))))


def measured(ratings: fr.Ratings, config: fr.Config, leaving: int, seed: int, momentum: float) -> list[list[str]]:
    """A row per number of rounds."""
    people = dealt(ratings, leaving, seed)
    rest, everybody = of(ratings, people.staying), of(ratings, people.staying, people.leaving)
    knew, never = fr.train(everybody, None, config), fr.train(rest, None, config)
    other_seed = fr.train(rest, None, replace(config, seed=config.seed + 1))
    tables = [leaf.shape[0] for leaf in config.model.tree().values() if leaf.role == "table"]
    ends = np.cumsum([0, *tables])
    blocks = [slice(first, last) for first, last in itertools.pairwise(ends.tolist())]
    before, rows = knew.recommender.model, []
    for rounds in ROUNDS:
        now, world = (gone_on(one, rest, rounds, momentum) for one in (knew, never))
        watched = [people.leaving, people.strangers]
        sent = [would_send(ratings, world, group) for group in watched]
        away = aligned(now.V, world.V, blocks) - world.V
        fits = [fit(ratings, now, group) - fit(ratings, world, group) for group in watched]
        areas = [area(*fits), area(*(lean(away, one) for one in sent))]
        since = aligned(before.V, now.V, blocks) - now.V
        stayed = would_send(ratings, now, people.staying[:leaving])
        both = area(lean(since, would_send(ratings, now, people.leaving)), lean(since, stayed)) if rounds else np.nan
        distances = [
            apart(ratings, now, one, people.staying) for one in (world, gone_on(other_seed, rest, rounds, momentum))
        ]
        rows.append(
            [str(rounds), *(f"{value:.4f}" for value in distances), *(f"{value:.3f}" for value in (*areas, both))]
        )
        print(" | ".join(rows[-1]), flush=True)
    return rows


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forgetting", description=__doc__)
    parser.add_argument("--dataset", default="ml-100k")
    parser.add_argument("--algorithm", default="fedrec+secure")
    parser.add_argument("--leaving", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--momentum", type=float, default=0.75, help="of the rounds without them")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    asked: Any = parser.parse_args()
    config = fr.assign(fr.preset(asked.algorithm), asked.settings)
    headings = ["rounds without", "apart", "another seed", "fit", "lean", "both models"]
    print(markdown_table(headings, measured(fr.load(asked.dataset), config, asked.leaving, asked.seed, asked.momentum)))


if __name__ == "__main__":
    main()
