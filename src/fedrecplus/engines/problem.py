"""What stays the same over all rounds of a simulation."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.config import Config, check
from fedrecplus.data import Ratings, ShardedRatings
from fedrecplus.engines.statistics import public_items
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import check_delta
from fedrecplus.protocol import PublicItems
from fedrecplus.randomness import keys, new_secret, subkey, uniform
from fedrecplus.rounds import encode_items, plan_of, start_server


@dataclass(frozen=True)
class Problem:
    """Everybody's ratings, the settings, and what is public."""

    config: Config
    ratings: Ratings
    public: PublicItems
    pseudo_indptr: NDArray[np.int64]
    """client u's pseudo items have the places ``pseudo_indptr[u]:pseudo_indptr[u + 1]``"""
    secrets: NDArray[np.uint64]
    """key of every draw of each client: from the seed in simulation, from the operating system on a real device"""
    cohort_key: int
    """of who is sampled: from the operating system where a claim counts on nobody knowing it, else the seed"""
    tested: Ratings | None = None
    """what clients are tested on, for a model that ``leaks`` alone"""

    @functools.cached_property
    def levels(self) -> Array:
        """Level number → rating on the standard scale."""
        scale = self.ratings.scale
        return scale.standardise(scale.values(np.arange(scale.levels)))

    @functools.cached_property
    def ages(self) -> NDArray[np.int32] | None:
        """How many of its client's choices came after each, where a model looks at it and the data tells."""
        return self.ratings.ages() if "order" in self.config.model.NEEDS else None

    @functools.cached_property
    def able(self) -> NDArray[np.int64]:
        """Clients with ratings, ascending; the same array in every round, by which an engine knows the same cohort."""
        return np.flatnonzero(np.diff(self.ratings.indptr) > 0)

    def asked(self, round_number: int) -> NDArray[np.int64]:
        """Clients that are asked in a round, ascending: those with ratings, sampled."""
        able = self.able
        cohort = self.config.cohort
        if cohort.fraction < 1.0:
            draws = uniform(subkey(self.cohort_key, "sampling", round_number), able)
            count = max(1, round(cohort.fraction * len(able)))
            by_draw = np.argsort(draws, kind="stable")[:count]
            able = able[draws < cohort.fraction] if cohort.sampling == "poisson" else np.sort(able[by_draw])
        return able

    def cohort(self, round_number: int) -> NDArray[np.int64]:
        """Clients that are asked in a round and answer, ascending."""
        asked, dropout = self.asked(round_number), self.config.cohort.dropout
        if dropout > 0.0:
            asked = asked[uniform(subkey(self.config.seed, "dropout", round_number), asked) >= dropout]
        return asked


def prepare(
    ratings: Ratings,
    config: Config,
    public: PublicItems | None = None,
    secrets: NDArray[np.uint64] | None = None,
    test: Ratings | None = None,
) -> Problem:
    """Check the settings against the ratings and gather what is public.

    ``public`` and ``secrets`` are given where these ratings are those of real devices; a simulation counts the one over
    all ratings and draws the other from the seed. ``test`` is looked at by models that leak, and by no other.
    """
    config = check(config)
    if config.privacy.UNIT is not None:
        check_delta(config.privacy.settings.delta, ratings.clients)
    if secrets is None:  # a simulation: too small a cohort is found before anything is released
        _check_cohort(ratings, config)
        _check_known_before(ratings, config)
    public = public_items(ratings, config) if public is None else public
    if secrets is None:
        secrets = keys(subkey(config.seed, "secrets"), np.arange(ratings.clients))
    indptr = np.concatenate([[0], np.cumsum(_pseudo_counts(ratings, public, config))]).astype(np.int64)
    start = start_server(config, public)  # what ratings and settings can't do together is found before the first round
    encode_items(start.V, public, config)
    hidden = config.privacy.amplifies and not config.seeded_noise
    cohort_key = new_secret() if hidden else config.seed
    return Problem(config, ratings, public, indptr, secrets, cohort_key, _tested(config, test))


def _tested(config: Config, test: Ratings | None) -> Ratings | None:
    """The test ratings, for a model that leaks."""
    if not config.model.leaks:
        return None
    if test is None:
        raise UserError("leaky negatives leave out what is tested on, and there are no test ratings", "give some")
    return test


def _check_cohort(ratings: Ratings, config: Config) -> None:
    """Refuse data with fewer people than the channel's sums are made for."""
    least = config.channel.least_cohort
    able = int((np.diff(ratings.indptr) > 0).sum())
    asked = int(able * config.cohort.fraction)
    if asked < least:
        raise UserError(
            f"a cohort of {asked} clients is too small for channel.rule={config.channel.rule}: sums of few people are "
            f"nearly single uploads, and channel.least_cohort = {least}",
            f"take more people, a larger cohort.fraction, or --set channel.least_cohort={max(asked, 2)}, knowing that",
        )


def _check_known_before(ratings: Ratings, config: Config) -> None:
    """Refuse a budget over items or a scale that are there because of somebody's ratings: no noise hides that."""
    if plan_of(config) is None:
        return
    if not ratings.listed:
        raise UserError(
            f"no ε covers a list of items that comes from the ratings: what one person alone rated would be among the "
            f"{ratings.item_count:,} items of {ratings.name} exactly if that person took part",
            "name the items that there are, by a list that was public before: --catalogue FILE",
        )
    if ratings.scale_inferred:
        raise UserError(
            f"no ε covers a scale that comes from the ratings: {ratings.scale} would be another one if one person had "
            "given a half star, or none",
            "say what the scale is: --scale LOW:HIGH:STEP",
        )


def _pseudo_counts(ratings: Ratings, public: PublicItems, config: Config) -> NDArray[np.int64]:
    """How many pseudo items each client has."""
    chosen, rated = config.pseudo_items, np.diff(ratings.indptr)
    if not config.hides_rows or isinstance(ratings, ShardedRatings):  # those of shards are counted where they are
        return np.zeros(ratings.clients, dtype=np.int64)
    extra = np.zeros(ratings.clients, dtype=np.int64)
    items, rows = chosen.extra_rows(public)
    if rows:
        extra[ratings.client_of_rating[np.isin(ratings.items, items)]] = rows
    sizes, of_client = np.unique(np.stack([rated, extra]), axis=1, return_inverse=True)
    counts = [chosen.count(size, ratings.item_count, more) for size, more in sizes.T.tolist()]
    return np.array(counts, dtype=np.int64)[of_client.reshape(-1)]
