"""Where popularity, averages and the mean come from: the participants, one secure sum of theirs, or other people."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.data import Ratings, load
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import Release, check_delta, contribution, epsilon_of, figures, planned, sensitivity
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import STATISTICS, plan_of, with_noise

_FIVE_STARS = 2.0
"""variance of a uniform rating on five stars"""


def public_items(ratings: Ratings, config: Config | None = None) -> PublicItems:
    """What everybody may know of the items. They are counted once, before the first round, and never again."""
    config, catalogue = config or Config(), ratings.catalogue
    exact = PublicItems(  # a simulation has no film site to look counts and averages up on
        content=catalogue.features() if catalogue is not None else np.zeros((ratings.item_count, 0)),
        popularity=ratings.item_counts(),
        average=ratings.item_means(),
        years=np.zeros(0, np.int64) if catalogue is None else catalogue.years.astype(np.int64),
        mean=ratings.mean(),
        noise=max(ratings.scale.level_variance / _FIVE_STARS, 1.0),
        people=int(np.count_nonzero(np.diff(ratings.indptr))),
    )
    if config.statistics.source == "public":
        return _of_others(exact, ratings, config.statistics.file)
    if config.statistics.source != "secure-sum":
        return exact
    budget = statistics_budget(config)
    if budget is None:  # exact figures, which only the server's word keeps from changing
        return replace(exact, source="secure-sum")
    if plan_of(config) is None:
        check_delta(budget.delta, ratings.clients)
    return budget.public(exact, *noisy_statistics(statistics_total(ratings, budget.cap), budget, exact.people, config))


@dataclass(frozen=True)
class StatisticsBudget:
    """What the sum of the statistics may cost, and so its noise."""

    multiplier: float
    delta: float
    cap: int
    accountant: str

    @property
    def epsilon(self) -> float:
        """What the sum costs by itself."""
        return epsilon_of([Release(self.multiplier)], self.delta, self.accountant)

    def public(self, exact: PublicItems, total: Array, sd: float) -> PublicItems:
        """These items with figures of the noisy sum in place of any others."""
        noisy = figures(total, sd, self.cap)
        return replace(
            exact, popularity=noisy.popularity, average=noisy.average, mean=noisy.mean, people=noisy.people,
            source="secure-sum", epsilon=self.epsilon,
        )  # fmt: skip


def statistics_budget(config: Config, accountant: str = "PLD") -> StatisticsBudget | None:
    """A share of the whole training's budget, or one of its own; None where the statistics are no noisy sum."""
    settings, plan = config.statistics, plan_of(config)
    if settings.source != "secure-sum":
        return None
    if plan is not None:
        assert plan.statistics is not None
        return StatisticsBudget(
            plan.statistics, config.privacy.settings.delta, config.privacy.settings.cap, plan.accountant
        )
    if settings.epsilon <= 0.0:
        return None
    multiplier = planned(settings.epsilon, settings.delta, 1.0, (), 1.0, accountant).statistics
    assert multiplier is not None
    return StatisticsBudget(multiplier, settings.delta, settings.cap, accountant)


def noisy_statistics(total: Array, budget: StatisticsBudget, clients: int, config: Config) -> tuple[Array, float]:
    """The sum of so many clients as it is released, and its noise's standard deviation."""
    return with_noise(total, budget.multiplier, sensitivity(budget.cap), clients, clients, STATISTICS, config)


def statistics_total(ratings: Ratings, cap: int) -> Array:
    """What all devices' contributions add up to."""
    total = np.zeros(2 * ratings.item_count + 2)
    for client in np.flatnonzero(np.diff(ratings.indptr) > 0).tolist():
        items, values = ratings.of(client)
        total += contribution(items.astype(np.int64), values, ratings.item_count, cap)
    return total


def _of_others(exact: PublicItems, ratings: Ratings, file: str) -> PublicItems:
    """Figures of another data set, joined by title where both have titles, else by item id."""
    if not file:
        raise UserError("statistics.source=public needs a data set of other people", "set statistics.file")
    others = load_others(file)
    place = _places(ratings, others)
    known = place >= 0
    if not known.any():
        raise UserError(
            f"statistics.file={file} has no item of {ratings.name}", "give a data set with the same titles or item ids"
        )
    others_public, mean = public_items(others), others.mean()
    popularity = np.where(known, others_public.popularity[place], 0)
    average = np.where(known, others_public.average[place], mean)
    source, people = f"public: {others.name}", others_public.people
    return replace(exact, popularity=popularity, average=average, mean=mean, source=source, people=people)


@functools.lru_cache(maxsize=4)
def load_others(file: str) -> Ratings:
    """Other people's ratings, which are read once."""
    return load(file)


def _places(ratings: Ratings, others: Ratings) -> NDArray[np.int64]:
    """Where each item is among the others' items, −1 where it is not."""
    ours, theirs = ratings.catalogue, others.catalogue
    if ours is not None and theirs is not None:
        names, known = ours.titles, theirs.titles
    else:
        names, known = tuple(map(str, ratings.item_ids.tolist())), tuple(map(str, others.item_ids.tolist()))
    place = {name: number for number, name in enumerate(known) if name}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)
