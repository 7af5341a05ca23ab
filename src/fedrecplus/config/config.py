"""A whole training: which part is chosen of each kind, with that part's own options, and what belongs to none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts import (
    Aggregation,
    Channel,
    Encoder,
    Mechanism,
    Model,
    Part,
    PseudoItems,
    ServerOptimizer,
    VirtualRatings,
)
from fedrecplus.settings import Annotated, Settings, number, text


class StatisticsSettings(Settings):
    """Where popularity and averages of items come from."""

    source: Annotated[
        Literal["participants", "secure-sum", "public"],
        text("exact figures of the participants (simulation only), one secure sum of theirs, or another data set"),
    ] = "participants"
    file: Annotated[str, text("ratings of other people, for source=public: a data set's name or a file")] = ""
    epsilon: Annotated[float, number(0, 1e3, "ε of the secure sum where there is no other budget; 0: exact sums")] = 0.0
    delta: Annotated[float, number(1e-15, 0.1, "δ of that, below 1/clients")] = 1e-5
    devices: Annotated[
        int, number(0, 10**6, "deployed: n, whose honest share adds enough noise to that; 1: each by itself; 0: all")
    ] = 0
    cap: ClassVar[int] = 50
    """ratings of a person that count in full where there is no other budget"""


class CohortSettings(Settings):
    """Which clients take part in a round."""

    fraction: Annotated[float, number(1e-9, 1, "share of all clients that is asked in a round")] = 1.0
    dropout: Annotated[float, number(0, 0.999, "share of the asked clients that never answers")] = 0.0
    sampling: Annotated[Literal["fixed", "poisson"], text("ask exactly that share, or toss a coin for each client")] = (
        "fixed"
    )


class ServerSettings(Settings):
    """How long the server goes on."""

    rounds: Annotated[int, number(1, 10**7, "T, communication rounds")] = 100
    cooldown: Annotated[float, number(0, 1, "share of the rounds, at the end, in which the step falls to 0")] = 0.0
    held_back: Annotated[
        float,
        number(0, 0.5, "simulation: share of the ratings held out to choose priors and lists, then trained on"),
    ] = 0.0


class EvaluationSettings(Settings):
    """When to look at the test ratings, and what makes a list good."""

    every: Annotated[
        int, number(1, 10**7, "rounds between evaluations; the first and the last round are always evaluated")
    ] = 10
    relevant_from: Annotated[
        float, number(1, 5, "a test item is relevant from this rating up, on the standard scale 1–5; of likes, all")
    ] = 4.0
    negatives: Annotated[
        int, number(0, 10**6, "also rank each test item among this many unrated items, drawn by the seed; 0: don't")
    ] = 0


class ClusterSettings(Settings):
    """How clients are spread over a cluster, for engine=ray. How many workers there are changes no figure, and is no
    setting: see docs/cluster.md."""

    shards: Annotated[int, number(1, 10**6, "groups of clients that are added up one after the other")] = 8
    engine: Annotated[str, text("what runs the rounds of a shard: fast, cuda or reference")] = "fast"


class GeneralSettings(Settings):
    """What belongs to no section."""

    algorithm: Annotated[str, text("the preset it began as")] = "custom"
    engine: Annotated[
        str,
        text(
            "what runs the rounds: fast, cuda (a graphics card), auto (cuda where there is a card, else fast), "
            "ray (a cluster), reference, or central (one place, no federation)"
        ),
    ] = "fast"
    precision: Annotated[
        Literal["float32", "float64"],
        text(
            "of the engines fast and cuda; the reference always uses float64, and so does cuda where clients choose "
            "items by V in every round"
        ),
    ] = "float32"
    deterministic: Annotated[
        bool, text("engine cuda: add updates up in a fixed order, so that the same run gives the same bits; slower")
    ] = False
    seed: Annotated[
        int, number(0, 2**62, "of start values, folds, sampling and, in simulation, the clients' secrets")
    ] = 0
    seeded_noise: Annotated[
        bool, text("draw the noise of a budget from the seed: for research, repeatable, and refused by publish")
    ] = False
    simulation_only: Annotated[
        bool, text("allow what must not run on real devices, such as u uᵀ of one person in the clear")
    ] = False


@dataclass(frozen=True)
class Config:
    """A whole training."""

    algorithm: str = "custom"
    engine: str = "fast"
    precision: str = "float32"
    deterministic: bool = False
    seed: int = 0
    seeded_noise: bool = False
    simulation_only: bool = False
    model: Model[Any] = field(default_factory=lambda: Model.choose("mf"))
    pseudo_items: PseudoItems[Any] = field(default_factory=lambda: PseudoItems.choose("none"))
    virtual_ratings: VirtualRatings[Any] = field(default_factory=lambda: VirtualRatings.choose("user-average"))
    encoder: Encoder[Any] = field(default_factory=lambda: Encoder.choose("centred"))
    aggregation: Aggregation[Any] = field(default_factory=lambda: Aggregation.choose("uniform"))
    channel: Channel[Any] = field(default_factory=lambda: Channel.choose("clear"))
    privacy: Mechanism[Any] = field(default_factory=lambda: Mechanism.choose("none"))
    server_optimizer: ServerOptimizer[Any] = field(default_factory=lambda: ServerOptimizer.choose("sgd"))
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    cohort: CohortSettings = field(default_factory=CohortSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)

    @property
    def choices(self) -> tuple[Part[Any], ...]:
        """All chosen parts."""
        return tuple(value for value in vars(self).values() if isinstance(value, Part))

    @property
    def hides_rows(self) -> bool:
        """Whether there are pseudo items: where the channel shows no lists of items, there is nothing to hide."""
        return self.shows_rows and self.pseudo_items.HIDES

    @property
    def shows_rows(self) -> bool:
        """Whether an upload shows which items are a client's: some channels don't, and some models upload all."""
        return self.channel.shows_rows and not self.model.ALL_ITEMS

    def visible_rows(self, items: NDArray[np.int64], item_count: int) -> NDArray[np.int64]:
        """Which rows the server sees an upload to have, of an upload of these items."""
        return self.channel.visible_rows(items, item_count) if self.shows_rows else items[:0]

    @property
    def answering(self) -> float:
        """The share of the asked clients that is in a round's sums, in a simulation."""
        return (1.0 - self.cohort.dropout) * self.channel.arriving

    @property
    def redraws(self) -> bool:
        """Whether clients draw new pseudo items each round."""
        return self.hides_rows and bool(self.pseudo_items.settings.redraw)

    @property
    def refreshes(self) -> bool:
        """Whether virtual ratings are computed anew each round."""
        return bool(self.virtual_ratings.settings.refresh)

    @property
    def chooses_by_V(self) -> bool:
        """Whether clients choose items by encoded items, anew in every round.

        Such a training is chaotic: V rounded to 32 bits once a round, and nothing else, moved the final RMSE by up to
        .03.
        """
        return self.redraws and "features" in self.pseudo_items.NEEDS

    def needs_on_device(self, need: str) -> bool:
        """Whether a part that runs on the device looks at something that is not always provided."""
        on_device: list[Part[Any]] = [self.model, self.channel]
        on_device += [self.pseudo_items, self.virtual_ratings] if self.hides_rows else []
        on_device += [self.aggregation] if self.aggregation.weighs_on_client else []
        return any(need in chosen.NEEDS for chosen in on_device)

    @property
    def needs_features(self) -> bool:
        """Whether a part looks at encoded items, so that a broadcast needs them."""
        return self.needs_on_device("features") or "features" in self.aggregation.NEEDS
