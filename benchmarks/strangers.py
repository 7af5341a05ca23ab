"""The default on data that nobody tuned it on, beside biases, popularity and EASE.

``python -m benchmarks.strangers [--only "NAME;…"] [--seed N]`` makes sets by generators that are not the package's own:
latent tastes, which decide what is chosen as well as how it is rated, skewed popularity, and one peculiarity each. A
row for each set and split. EASE is given the best of three ridges by the test itself, which the others are not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import fedrecplus as fr
from fedrecplus.experiments.baselines import ease
from fedrecplus.experiments.trivial import biases, global_mean
from fedrecplus.training import Evaluation, Fallback, Predictor, choose, measure, predictor_for, train

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Rows = tuple[Numbers, Numbers, Array]
"""people, items, how much they are liked"""
RIDGES = (30.0, 150.0, 500.0)
HEADINGS = ("set", "split", "default", "RMSE", "biases", "± of the difference", "NDCG@10", "popular", "±", "EASE")


@dataclass(frozen=True)
class World:
    """People who choose by popularity and taste, and rate by bias, quality and taste."""

    people: int
    items: int
    each: float
    """median choices of a person"""
    spread: float = 0.7
    least: int = 3
    skew: float = 0.9
    """Zipf's exponent"""
    taste: float = 1.0
    """of choices"""
    taste_of_ratings: float = 0.6
    noise: float = 0.5
    bias: float = 0.4
    tastes: int = 6

    def rows(self, seed: int) -> Rows:
        """What was chosen, without repeats, and how much it is liked."""
        rng = np.random.default_rng(seed)
        P = rng.normal(size=(self.people, self.tastes)) / np.sqrt(self.tastes)
        Q, quality = rng.normal(size=(self.items, self.tastes)), rng.normal(size=self.items)
        popular = -self.skew * np.log(1 + rng.permutation(self.items)) + 0.4 * (self.taste > 0) * quality
        wanted = self.each * np.exp(self.spread * rng.normal(size=self.people))
        counts: Numbers = np.clip(np.round(wanted).astype(np.int64), self.least, self.items - 1)
        likings = P @ Q.T
        ranked = np.argsort(-(popular + self.taste * likings + rng.gumbel(size=likings.shape)), axis=1)
        users = np.repeat(np.arange(self.people), counts)
        items = np.concatenate([row[:count] for row, count in zip(ranked, counts, strict=True)])
        loudness = np.exp(0.3 * rng.normal(size=self.people))[users]
        own = self.taste_of_ratings * likings[users, items] + self.noise * rng.normal(size=len(users))
        return users, items, self.bias * rng.normal(size=self.people)[users] + 0.4 * quality[items] + loudness * own


def frame(users: Any, items: Any, ratings: Any = None, times: Any = None) -> pl.DataFrame:
    """In an order that says nothing."""
    columns = {"user": [f"u{one}" for one in users], "item": [f"i{one}" for one in items]}
    more = {"rating": ratings, "timestamp": times}
    return pl.DataFrame({**columns, **{name: one for name, one in more.items() if one is not None}}).sample(
        fraction=1.0, shuffle=True, seed=1
    )


def on_scale(rows: Rows, low: float, high: float, step: float, middle: float, wide: float = 1.0) -> pl.DataFrame:
    """Ratings rounded to a scale."""
    users, items, liking = rows
    levels = np.round((middle + wide * liking - low) / step) * step + low
    return frame(users, items, np.clip(levels, low, high))


def stars(world: World, seed: int) -> pl.DataFrame:
    """From 1 to 5."""
    return on_scale(world.rows(seed), 1, 5, 1, 3.5)


def books(seed: int) -> pl.DataFrame:
    """Eight of ten readers rate a single book, mostly 10."""
    users, items, liking = World(4000, 1500, 12, spread=1.0, skew=0.7, bias=0.7).rows(seed)
    rng = np.random.default_rng(seed + 1)
    once = rng.random(4000) < 0.8
    first = np.concatenate([[True], users[1:] != users[:-1]])
    kept = first | ~once[users]
    return on_scale((users[kept], items[kept], liking[kept]), 1, 10, 1, 9.0, 2.2)


def one_active(seed: int) -> pl.DataFrame:
    """Somebody rates nine tenths of everything."""
    users, items, liking = World(300, 1000, 10, spread=0.5).rows(seed)
    rng = np.random.default_rng(seed + 1)
    more = rng.choice(1000, 900, replace=False)
    others = users > 0
    joined = (np.concatenate([users[others], np.zeros(900, np.int64)]), np.concatenate([items[others], more]))
    return on_scale((*joined, np.concatenate([liking[others], 0.6 * rng.normal(size=900)])), 1, 5, 1, 3.5)


def communities(seed: int) -> pl.DataFrame:
    """Four that share no item."""
    parts = [World(300, 250, 18).rows(10 * seed + place) for place in range(4)]
    users, items = (
        np.concatenate([part[k] + n * place for place, part in enumerate(parts)]) for k, n in ((0, 300), (1, 250))
    )
    return on_scale((users, items, np.concatenate([part[2] for part in parts])), 1, 5, 1, 3.5)


def loud(seed: int) -> pl.DataFrame:
    """Everybody uses the scale in their own way: some its ends alone."""
    users, items, liking = World(900, 300, 25, spread=0.5).rows(seed)
    loudness = np.random.default_rng(seed + 1).exponential(1.5, 900)[users]
    return on_scale((users, items, loudness * liking), 1, 5, 1, 3.0)


def dice(seed: int) -> pl.DataFrame:
    """Choices with taste, ratings without."""
    users, items, _ = World(600, 300, 25, spread=0.5, taste=0.8).rows(seed)
    return frame(users, items, np.random.default_rng(seed + 1).integers(1, 6, len(users)))


def clicks(world: World, seed: int) -> pl.DataFrame:
    """No ratings."""
    return frame(*world.rows(seed)[:2])


def music(seed: int) -> pl.DataFrame:
    """Plays with times: sessions of a genre, a third of them repeats of the last few."""
    rng = np.random.default_rng(seed)
    genre, popularity = rng.integers(0, 12, 600), 1 / (1 + rng.permutation(600)) ** 0.8
    likes = rng.dirichlet(np.full(12, 0.25), 700)
    plays: list[tuple[int, int, int]] = []
    for person in range(700):
        time, mood, recent = 1.5e9 + 3e7 * rng.random(), rng.choice(12, p=likes[person]), list[int]()
        for _ in range(int(np.clip(40 * np.exp(0.7 * rng.normal()), 5, 300))):
            time += rng.exponential(200) if rng.random() < 0.9 else rng.exponential(3e5)
            mood = rng.choice(12, p=likes[person]) if rng.random() < 0.12 else mood
            weights = popularity * np.where(genre == mood, 1, 0.02)
            new = int(rng.choice(600, p=weights / weights.sum()))
            again = bool(recent) and rng.random() < 0.35
            recent.append(recent[-1 - rng.integers(0, min(len(recent), 8))] if again else new)
            plays.append((person, recent[-1], int(time)))
    users, items, times = zip(*plays, strict=True)
    return frame(users, items, None, times)


def drift(seed: int) -> pl.DataFrame:
    """Tastes, moods and what is popular change with time."""
    rng = np.random.default_rng(seed)
    Q, quality, born = rng.normal(size=(500, 6)), rng.normal(size=500), 0.9 * rng.random(500)
    popular = -0.8 * np.log(1 + rng.permutation(500))
    rows: list[tuple[int, int, float, int]] = []
    for person in range(700):
        before, after = rng.normal(size=(2, 6)) / np.sqrt(6)
        bias, lean = 0.4 * rng.normal(size=2)
        start, free = 0.8 * rng.random(), np.ones(500, bool)
        length = min(1 - start, 0.05 + 0.4 * rng.random())
        for now in np.sort(start + length * rng.random(int(np.clip(30 * np.exp(0.6 * rng.normal()), 4, 200)))):
            share = (now - start) / length
            taste = (1 - share) * before + share * after
            draw = popular - 4 * (now - born) + 1.3 * Q @ taste + rng.gumbel(size=500)
            there = free & (born <= now)
            if not there.any():
                continue
            item = int(np.argmax(np.where(there, draw, -np.inf)))
            free[item] = False
            liking = bias + lean * share - 0.5 * now + 0.4 * quality[item] + 0.7 * Q[item] @ taste
            rows.append((person, item, 3.4 + liking + 0.5 * rng.normal(), int(1.4e9 + 1e8 * now)))
    users, items, ratings, times = zip(*rows, strict=True)
    return frame(users, items, np.clip(np.round(ratings), 1, 5), times)


def newcomers(seed: int) -> pl.DataFrame:
    """Everybody comes once, to items that came before: at any time many of both are new."""
    users, items, liking = World(1500, 900, 7, least=1, bias=0.5).rows(seed)
    rng = np.random.default_rng(seed + 1)
    people, born = rng.random(1500), np.where(rng.random(900) < 0.1, 0.0, rng.random(900))
    there = born[items] <= people[users]
    times = (1.4e9 + 1e8 * people[users] + 1000 * rng.random(len(users)))[there]
    rated = np.clip(np.round(3.5 + liking[there]), 1, 5)
    return frame(users[there], items[there], rated, times.astype(np.int64))


COLD = ("random", "cold-users", "cold-items")
SETS: dict[str, tuple[Callable[[int], pl.DataFrame], Sequence[str]]] = {
    "half stars, 8 each": (lambda seed: on_scale(World(1500, 700, 8).rows(seed), 0.5, 5, 0.5, 3.4), COLD),
    "books": (books, ("random", "cold-users")),
    "jokes, 0 to 100": (lambda seed: on_scale(World(600, 100, 35, 0.4, 5).rows(seed), 0, 100, 1, 55, 25), ("random",)),
    "thumbs": (lambda seed: on_scale(World(1000, 500, 22, 0.6).rows(seed), -1, 1, 2, 0.3), ("random",)),
    "wine, 70 to 100": (lambda seed: on_scale(World(900, 700, 15).rows(seed), 70, 100, 1, 88, 3), COLD),
    "mostly fives": (lambda seed: on_scale(World(2500, 900, 6, 0.8, 2).rows(seed), 1, 5, 1, 6, 1.6), COLD),
    "40 people": (partial(stars, World(40, 30, 9, 0.4)), ("random", "cold-users")),
    "two ratings each": (partial(stars, World(3000, 300, 2, 0.0, 2, taste=1.2)), ("random",)),
    "two each, no taste": (
        partial(stars, World(3000, 100, 2, 0.0, 2, skew=1.0, taste=0, taste_of_ratings=0, noise=0.8, bias=0)),
        ("random",),
    ),
    "one very active": (one_active, ("random",)),
    "3,000 items": (partial(stars, World(400, 3000, 50, skew=0.7)), ("random", "cold-users")),
    "12 items": (partial(stars, World(2000, 12, 6, 0.3, 2, skew=0.3)), ("random",)),
    "chosen by popularity": (partial(stars, World(800, 600, 28, 0.6, taste=0)), COLD),
    "chosen at random": (partial(stars, World(900, 400, 25, 0.4, skew=0, taste=0)), COLD),
    "communities": (communities, ("random", "cold-users")),
    "loud people": (loud, ("random",)),
    "dice": (dice, ("random",)),
    "clicks, 3 each": (partial(clicks, World(3000, 500, 3, 0.6, 2, taste=1.5)), ("random",)),
    "clicks, 90 each": (partial(clicks, World(500, 800, 90, 0.6, 10, taste=1.2)), ("random",)),
    "music": (music, ("random", "last:1")),
    "drift": (drift, ("random", "last:1", "time:0.1")),
    "newcomers": (newcomers, ("last:1", "time:0.1", "cold-items")),
}


def row_of(name: str, how: str, seed: int) -> list[str]:
    """The default, and what it is held to, on one split of a set."""
    training, test = fr.split(SETS[name][0](seed), fold=0, how=how)
    config = choose(training, how=how).config
    recommender = train(training, None, config).recommender
    ours = measure(training, test, *predictor_for(recommender, training, test))
    means, popular = (_judged(training, test, each) for each in (biases(training, 5.0, 10.0), global_mean(training)))
    best = max((_judged(training, test, ease(training, ridge))["ndcg@10"] or 0.0 for ridge in RIDGES), default=0.0)
    errors = [_figure(ours["rmse"]), _figure(means["rmse"]), _figure(_error_of_rmse(test, ours, means))]
    lists = [
        _figure(ours["ndcg@10"]),
        _figure(popular["ndcg@10"]),
        _figure(_error_of_lists(ours, popular)),
        _figure(best),
    ]
    return [name, how, f"{config.algorithm} {config.model.columns}", *errors, *lists]


def _judged(training: fr.Ratings, test: fr.Ratings, predictor: Predictor) -> Evaluation:
    return measure(training, test, predictor, Fallback.of(training).knowing_everything())


def _error_of_rmse(test: fr.Ratings, ours: Evaluation, means: Evaluation) -> float | None:
    """Standard error of the difference of two RMSE, people being drawn."""
    if ours.rmse is None or means.rmse is None:
        return None
    counts = np.diff(test.indptr)
    able = counts > 0
    n, squares = counts[able], (ours.rmse_by_client**2 - means.rmse_by_client**2)[able] * counts[able]
    rest = squares - n * squares.sum() / n.sum()
    return float(np.sqrt(rest @ rest) / n.sum() / (2 * means.rmse))


def _error_of_lists(ours: Evaluation, popular: Evaluation) -> float | None:
    lead = ours.ndcg_by_client - popular.ndcg_by_client
    lead = lead[np.isfinite(lead)]
    return float(lead.std() / np.sqrt(len(lead))) if len(lead) else None


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def main() -> None:
    """Print a line for each set and split as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = [name for name in options.only.split(";") if name] or list(SETS)
    print(" | ".join(HEADINGS))
    for name in names:
        for how in SETS[name][1]:
            print(" | ".join(row_of(name, how, options.seed)), flush=True)


if __name__ == "__main__":
    main()
