"""Which settings suit the data at hand, where no algorithm is named: by what the data are, and by a validation cut.

`fedrec+secure` is tried in two sizes, for a few rounds each. Whatever is no better than biases and popular items falls
back on `biases`. All run under secure sums but for the biases of people too few for a sum, and each device adds up the
errors and lists of what it holds out.

Ours: few rounds order sizes as many do, and the choice costs no more than the training that comes after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, assign, preset, with_channel
from fedrecplus.data import Ratings, ShardedRatings, Split, validation_cut
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import RingSettings, least_persons, never_summed
from fedrecplus.training.loop import train
from fedrecplus.training.measures import evaluate

AUTO = "auto"
"""in place of an algorithm's name"""
RATINGS, FALLBACK = "fedrec+secure", "biases"
SPARSE = (
    "model.factors=4",
    "model.interaction_factors=64",
    "model.interaction_item_ridge=0.5",
    "model.rating_weight=0",
    "model.popularity_weight=0",
    "model.structure=whole",
    "server.rounds=14",
)
"""where few people chose an item, choices have little in common: W needs more columns, and freer rows. What it says of
an item is little, too, beside a predicted rating, which has no say then unless validation gives it one. Of so many
components the strongest ones don't stand out in young tables: whether they are chance is validation's to say, too"""
_WIDEST, _CATALOGUE = "model.interaction_factors=128", range(1000, 4097)
"""where so many columns are worth their bytes, twice as many are, too; of more items they would be megabytes a round,
of fewer most of a square table. They aren't tried: that would take more time than all else"""
LARGE = ("model.factors=40", "model.interaction_factors=64", "server.rounds=25")
"""where many rated an item, more of V can be learnt, too"""
CHOICES = ("model.factors=4", "model.interaction_factors=32", "model.interaction_item_ridge=0.5")
"""clicks say nothing that V could learn, so nearly all columns are W's; and there every choice counts as a hit, the
rare ones too, of which freer rows know more"""
LARGE_CHOICES = ("model.interaction_factors=128", "server_optimizer.momentum=0.5", "server.rounds=25")
"""where many chose an item, more columns of W always ranked better, so that nothing smaller is tried; with steps that
remember less they end where exact least squares do"""
_MANY = 300.0
"""ratings of an item, averaged over ratings, from which data are large"""
_SHARE = 0.1
"""of the ratings that is held out"""
_PROBE = 5
"""rounds in which sizes are compared"""
_MORE = 12
"""rounds of the small size, where biases are better than a few of them"""
_SURE = 2.0
"""standard errors by which popular items must be better lists: what predicts better is not given up for chance"""
_LISTS, _RATINGS = 0.1, 0.003
"""shares of NDCG@10 and of RMSE, either of which more columns must gain, since a round of them has twice
the bytes and more"""
_PRICE = 0.004
"""share of RMSE that more columns may cost in few rounds, for each such share of NDCG@10 that they gain"""


@dataclass(frozen=True)
class Choice:
    """Settings, and one line that says why these."""

    config: Config
    why: str
    bytes_up: float = 0.0
    """that a client sent for the choice, on average"""


@dataclass(frozen=True)
class Validated:
    """How a candidate did on the validation cut."""

    config: Config
    rmse: float | None
    """None for clicks"""
    ndcg: float
    ndcg_by_client: NDArray[np.float64]
    """NaN for who has nothing held out"""
    bytes_up: float
    rounds: int = _PROBE

    @property
    def figures(self) -> str:
        """For people."""
        error = "" if self.rmse is None else f"RMSE {self.rmse:.4f}, "
        columns = f" with {self.config.model.columns} columns" if self.config.algorithm == RATINGS else ""
        columns += f" after {self.rounds} rounds instead of {_PROBE}" if columns and self.rounds != _PROBE else ""
        return f"{self.config.algorithm}{columns} {error}NDCG@10 {self.ndcg:.4f}"

    def beats(self, plain: Validated) -> bool:
        """Whether it is better by ratings and its lists not surely worse; of clicks, whether its lists are better."""
        if self.rmse is None or plain.rmse is None:
            return self.ndcg >= plain.ndcg
        lead, error = self._lead(plain)
        return self.rmse < plain.rmse and lead >= -_SURE * error

    def is_worth_more_than(self, small: Validated) -> bool:
        """Whether lists or ratings gain what more bytes should, and the others lose little beside it."""
        lead, error = self._lead(small)
        gain = _LISTS * small.ndcg
        better_lists = lead > max(error, gain)
        if self.rmse is None or small.rmse is None:
            return better_lists
        better_ratings = self.rmse < (1.0 - _RATINGS) * small.rmse
        outweighed = gain * (self.rmse - small.rmse) <= lead * _PRICE * small.rmse
        return (better_lists and outweighed) or (better_ratings and lead > -error - gain)

    def _lead(self, other: Validated) -> tuple[float, float]:
        """By how much its lists are better, and the standard error of that."""
        lead = self.ndcg_by_client - other.ndcg_by_client
        lead = lead[np.isfinite(lead)]
        return (float(lead.mean()), float(lead.std()) / np.sqrt(len(lead))) if len(lead) else (0.0, 0.0)


def choose(
    ratings: Ratings,
    seed: int = 0,
    how: str | Split = "random",
    *,
    validate: bool = True,
    tried: Callable[[Validated], object] = lambda _: None,
) -> Choice:
    """The settings that suit these ratings, for a test part that is split off as ``how`` says.

    Without ``validate`` by what the data are alone. ``tried`` is told of each candidate when its figures are there.
    """
    people = _people(ratings)
    secure, plain = (assign(preset(name), [f"seed={seed}"]) for name in (RATINGS, FALLBACK))
    secure = assign(secure, list(CHOICES)) if ratings.likes_alone else secure
    fitted, held_out = _cut(ratings, seed, how)
    if min(people, _people(fitted)) < plain.channel.least_cohort:
        clear = assign(with_channel(plain, "clear"), ["statistics.source=participants"])
        return Choice(
            clear,
            f"{people} people are too few to learn from each other, or to hide in a sum: biases alone, of uploads in "
            "the clear, which tell a server every rating",
        )
    kind = "clicks" if ratings.likes_alone else "ratings"
    if not validate or isinstance(ratings, ShardedRatings):
        return Choice(secure, f"it suits {kind}; nothing else was tried")
    sizes = (secure, *_wider(secure, ratings))
    sizes = sizes[-1:] if ratings.likes_alone and _is_large(ratings) else sizes

    def validated(config: Config, rounds: int) -> Validated:
        candidate = _validated(config, fitted, held_out, rounds)
        tried(candidate)
        return candidate

    choice = _validated_choice(sizes, plain, kind, validated)
    return _widened(choice, secure, ratings)


def left_out_of_sums(ratings: Ratings, config: Config) -> float:
    """The share of ratings that are of items whose rows secure sums leave out, since too few people rated these."""
    settings, counts = config.channel.settings, ratings.item_counts()
    if not isinstance(settings, RingSettings):
        return 0.0
    return float(counts[never_summed(public_items(ratings, config), settings)].sum() / counts.sum())


def _validated_choice(
    sizes: tuple[Config, ...], plain: Config, kind: str, validated: Callable[[Config, int], Validated]
) -> Choice:
    """The size that is worth its bytes; biases where they are better than more rounds of the small one, too."""
    small, *wider = (validated(config, _PROBE) for config in sizes)
    means = validated(plain, plain.server.rounds)
    best = next((wide for wide in wider if wide.is_worth_more_than(small)), small)
    tried = [small, *wider, means]
    if not best.beats(means):
        best = validated(sizes[0], _MORE)
        tried.append(best)
    chosen = best if best.beats(means) else means
    beside = "; ".join(one.figures for one in tried if one is not chosen)
    better = "better lists" if means.rmse is None else "both better ratings and lists as good"
    reason = f"nothing else has {better}" if chosen is means else f"the best for {kind}"
    why = f"{reason} on a validation cut: {chosen.figures}; {beside}"
    return Choice(chosen.config, why, sum(one.bytes_up for one in tried))


def _wider(narrow: Config, ratings: Ratings) -> tuple[Config, ...]:
    """The second size, where there are people enough that a sum of so many columns is not taken apart."""
    wide = assign(narrow, list(_second_size(ratings)))
    return (wide,) if _people(ratings) >= least_persons(wide.model.columns) else ()


def _widened(choice: Choice, narrow: Config, ratings: Ratings) -> Choice:
    """With the most columns, where sparse data were found to want them and there are items and people enough."""
    sparse = assign(narrow, list(SPARSE))
    widest = assign(sparse, [_WIDEST])
    enough = _people(ratings) >= least_persons(widest.model.columns) and ratings.item_count in _CATALOGUE
    if choice.config != sparse or not enough:
        return choice
    return replace(choice, config=widest, why=f"{choice.why}; so {widest.model.columns} columns are trained")


def _second_size(ratings: Ratings) -> tuple[str, ...]:
    if not _is_large(ratings):
        return SPARSE
    return LARGE_CHOICES if ratings.likes_alone else LARGE


def _is_large(ratings: Ratings) -> bool:
    """By n̂ = Σn²/Σn, how many ratings the item behind a rating has on average."""
    counts = ratings.item_counts().astype(np.float64)
    return bool(counts @ counts >= _MANY * counts.sum())


def _people(ratings: Ratings) -> int:
    """Who has rated anything."""
    return int(np.count_nonzero(np.diff(ratings.indptr)))


def _cut(ratings: Ratings, seed: int, how: str | Split) -> tuple[Ratings, Ratings]:
    """What candidates are fitted to, and what they are judged by; of shards and single ratings nothing is held out.

    A random cut where the training part can't be split as the test was: all of one moment, or nobody with two ratings.
    """
    if isinstance(ratings, ShardedRatings) or len(ratings) < 2:
        return ratings, ratings
    try:
        return validation_cut(ratings, _SHARE, seed, how)
    except UserError:
        return validation_cut(ratings, _SHARE, seed)


def _validated(config: Config, fitted: Ratings, held_out: Ratings, rounds: int) -> Validated:
    run = train(fitted, None, assign(config, [f"server.rounds={rounds}", f"evaluation.every={rounds}"]))
    lists = evaluate(run, fitted, held_out)
    sent = run.result["bytes_up_per_client_round"] * run.result["rounds"]
    return Validated(config, lists["rmse"], lists["ndcg@10"] or 0.0, lists.ndcg_by_client, sent, rounds)
