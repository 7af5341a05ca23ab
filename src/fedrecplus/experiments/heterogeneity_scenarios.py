"""In which ways clients may differ, and which rules are to cope with it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from fedrecplus.experiments.heterogeneity_clients import Change, add_noise, leave_few, promote, rate_at_random


@dataclass(frozen=True)
class Scenario:
    """A way in which clients may differ."""

    summary: str
    change: Change | None = None
    """what happens to the ratings of the affected clients"""
    settings: tuple[str, ...] = ()
    skewed: bool = False
    adaptive: bool = False
    pushes: bool = False

    @property
    def affects(self) -> bool:
        """Whether there are clients that are not to be counted as honest."""
        return self.change is not None or self.adaptive


DRIFTS = (5, 10, 20)
"""K, local epochs: the more of them, the further clients drift apart in a round"""
SCENARIOS: dict[str, Scenario] = {
    "clean": Scenario("everybody is honest"),
    "random": Scenario("a share of the clients rates at random", rate_at_random),
    "noisy": Scenario("a share of the clients errs by a star and a half", add_noise),
    "few": Scenario("a share of the clients has five ratings left", leave_few),
    **{
        f"drift-{epochs}": Scenario(
            f"everybody trains K = {epochs} epochs before it uploads", settings=(f"client.local_epochs={epochs}",)
        )
        for epochs in DRIFTS
    },
    "skewed": Scenario("some take part nearly always, others hardly ever", skewed=True),
    "promotion": Scenario("a share of the clients gives one item the best rating", promote, pushes=True),
    "copycat": Scenario("a share of the clients sends the last step back", adaptive=True),
    "copycat-push": Scenario("the same, with one item pushed", promote, adaptive=True, pushes=True),
}
READINGS, TEMPERATURES = ("own", "mean-own", "table"), (0.5, 1.0)
RULES: dict[str, tuple[str, ...]] = {
    "uniform": ("aggregation.rule=uniform",),
    **{
        f"wasserstein {rows} τ={temperature:g}": (
            "aggregation.rule=wasserstein",
            f"aggregation.rows={rows}",
            f"aggregation.temperature={temperature}",
        )
        for rows, temperature in itertools.product(READINGS, TEMPERATURES)
    },
    "coordinate-median": ("aggregation.rule=coordinate-median",),
    "trimmed-mean": ("aggregation.rule=trimmed-mean",),
    "krum": ("aggregation.rule=krum",),
}
