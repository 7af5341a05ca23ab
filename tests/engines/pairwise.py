"""Few trainings in which every two values of different settings meet.

Nearly all errors that show in some combination of settings show in a pair of them. All pairs of some thirty settings
fit into a hundred or so trainings, where all combinations would be millions.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence

from fedrecplus.config import Config, assign, check
from fedrecplus.config.change import own_names
from fedrecplus.errors import UserError

Values = Mapping[str, Sequence[str]]
"""setting → the values that it is tried with, as texts"""
Chosen = dict[str, str]
Pair = tuple[tuple[str, str], tuple[str, str]]


def trainings(start: Config, values: Values, tries: int = 30, seed: int = 0) -> list[tuple[Chosen, Config]]:
    """Configs that cover every pair that can be in one config; the same list each time."""
    draws = random.Random(seed)
    left = dict.fromkeys(
        pair
        for (first, some), (second, others) in itertools.combinations(values.items(), 2)
        for pair in itertools.product([(first, value) for value in some], [(second, value) for value in others])
    )
    found = []
    while left:
        wanted = next(iter(left))
        made = next(filter(None, (_best(start, values, wanted, left, tries, draws) for _ in range(8))), None)
        left.pop(wanted)  # a pair that can't be is not asked for again
        if made is not None:
            found.append(made)
            for pair in pairs(made[0]):
                left.pop(pair, None)
    return found


def pairs(chosen: Chosen) -> Iterator[Pair]:
    """All pairs of settings of one config."""
    return itertools.combinations(chosen.items(), 2)  # type: ignore[return-value]


def _best(
    start: Config, values: Values, wanted: Pair, left: dict[Pair, None], tries: int, draws: random.Random
) -> tuple[Chosen, Config] | None:
    """Of some random configs with the wanted pair, the possible one with most pairs that are left."""
    candidates = []
    for _ in range(tries):
        chosen = having({name: draws.choice(some) for name, some in values.items()} | dict(wanted))
        if all(name in chosen for name, _ in wanted):
            candidates.append((sum(pair in left for pair in pairs(chosen)), chosen))
    for _, chosen in sorted(candidates, key=lambda candidate: -candidate[0]):
        config = possible(start, chosen)
        if config is not None:
            return chosen, config
    return None


def having(drawn: Chosen) -> Chosen:
    """Without the options that the chosen rules don't have."""
    return {name: value for name, value in drawn.items() if _has(name, drawn.get(f"{name.partition('.')[0]}.rule"))}


@functools.cache
def _has(name: str, rule: str | None) -> bool:
    kind, _, option = name.partition(".")
    return option == "rule" or rule is None or option in own_names(kind, rule)


def possible(start: Config, chosen: Chosen) -> Config | None:
    """The config with these settings; None where they can't be together."""
    try:
        return check(assign(start, [f"{name}={value}" for name, value in chosen.items()]))
    except UserError:
        return None
