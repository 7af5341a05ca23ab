"""Which algorithm suits the data at hand, where none is named: by what the data are, and by a validation cut of them.

Ratings take `fedrec+secure`. Clicks take it, or federated collaborative filtering, whichever lists better. Whatever is
no better than biases and popular items falls back on `biases`. All run under secure sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, assign, preset, with_channel
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.shards.read import ShardedRatings
from fedrecplus.data.splits import validation_cut
from fedrecplus.training.loop import train
from fedrecplus.training.measures import evaluate

AUTO = "auto"
"""in place of an algorithm's name"""
RATINGS, FALLBACK, FCF = "fedrec+secure", "biases", "fcf"
_SHARE = 0.1
"""of the ratings that is held out"""
_SURE = 2.0
"""standard errors: with few people lists differ by chance, and what predicts better is not given up for that"""
_FEW_ROUNDS = 20
"""of FCF in the validation: its lists are near their best by then, and a round takes rows of all items"""


@dataclass(frozen=True)
class Choice:
    """Settings, and one line that says why these."""

    config: Config
    why: str


@dataclass(frozen=True)
class Validated:
    """How a candidate did on the validation cut."""

    config: Config
    rmse: float | None
    """None for clicks"""
    ndcg: float
    ndcg_by_client: NDArray[np.float64]
    """NaN for who has nothing held out"""

    @property
    def figures(self) -> str:
        """For people."""
        error = "" if self.rmse is None else f"RMSE {self.rmse:.4f}, "
        return f"{self.config.algorithm} {error}NDCG@10 {self.ndcg:.4f}"

    def beats(self, plain: Validated) -> bool:
        """Whether it is better by ratings and its lists not surely worse; of clicks, whether its lists are better."""
        if self.rmse is None or plain.rmse is None:
            return self.ndcg >= plain.ndcg
        lead = self.ndcg_by_client - plain.ndcg_by_client
        lead = lead[np.isfinite(lead)]
        doubt = _SURE * float(lead.std()) / np.sqrt(max(len(lead), 1)) if len(lead) else 0.0
        return self.rmse < plain.rmse and self.ndcg >= plain.ndcg - doubt


def choose(ratings: Ratings, seed: int = 0, *, validate: bool = True) -> Choice:
    """The settings that suit these ratings; without ``validate`` by what the data are alone."""
    people = _people(ratings)
    suited = [assign(config, [f"seed={seed}"]) for config in _suited(ratings)]
    plain = assign(preset(FALLBACK), [f"seed={seed}"])
    if min(people, _people(_cut(ratings, seed)[0])) < plain.channel.least_cohort:
        clear = assign(with_channel(plain, "clear"), ["statistics.source=participants"])
        return Choice(clear, f"{people} people are too few to learn from each other, or to hide in a sum: biases alone")
    kind = "clicks" if ratings.likes_alone else "ratings"
    if not validate or isinstance(ratings, ShardedRatings):
        return Choice(suited[0], f"it suits {kind}; nothing else was tried")
    best, *others = _ranked([_validated(config, ratings, seed) for config in [*suited, plain]], plain.algorithm)
    config = next((one for one in [*suited, plain] if one.algorithm == best.config.algorithm), plain)
    beside = "; ".join(one.figures for one in others)
    reason = "nothing else has both better ratings and lists as good for" if config is plain else "the best for"
    return Choice(config, f"{reason} {kind} on a validation cut: {best.figures}; {beside}")


def _people(ratings: Ratings) -> int:
    """Who has rated anything."""
    return int(np.count_nonzero(np.diff(ratings.indptr)))


def _cut(ratings: Ratings, seed: int) -> tuple[Ratings, Ratings]:
    """What candidates are fitted to, and what they are judged by; of shards and single ratings nothing is held out."""
    if isinstance(ratings, ShardedRatings) or len(ratings) < 2:
        return ratings, ratings
    return validation_cut(ratings, _SHARE, seed)


def _suited(ratings: Ratings) -> list[Config]:
    """What suits the data by what they are, the first before the others."""
    if not ratings.likes_alone:
        return [preset(RATINGS)]
    fcf = with_channel(preset(FCF), "secure", "whole")
    return [preset(RATINGS), assign(fcf, ["channel.weights=sent", "channel.bound=64", "statistics.source=secure-sum"])]


def _validated(config: Config, ratings: Ratings, seed: int) -> Validated:
    fitted, held_out = _cut(ratings, seed)
    rounds = min(config.server.rounds, _FEW_ROUNDS) if config.algorithm == FCF else config.server.rounds
    short = assign(config, [f"server.rounds={rounds}", f"evaluation.every={rounds}"])
    run = train(fitted, held_out, short)
    by_client = evaluate(run, fitted, held_out).ndcg_by_client
    return Validated(config, run.result["rmse"], (run.result["ranking"] or {}).get("ndcg@10") or 0.0, by_client)


def _ranked(candidates: Sequence[Validated], fallback: str) -> list[Validated]:
    """The best first: whatever beats the fallback, by its lists; else the fallback."""
    plain = next(one for one in candidates if one.config.algorithm == fallback)
    able = sorted((one for one in candidates if one.beats(plain) and one is not plain), key=lambda one: -one.ndcg)
    best = able[0] if able else plain
    return [best, *(one for one in candidates if one is not best)]
