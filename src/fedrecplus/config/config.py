"""A whole training: which part is chosen of each kind, with that part's own options, and what belongs to none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts import Part, part
from fedrecplus.parts.pseudo_items import SetSettings
from fedrecplus.settings import Annotated, Settings, number, read_settings, text


@dataclass(frozen=True)
class Choice:
    """A part and its options.

    >>> Choice("pseudo_items", "similar").options.ratio
    1.0
    """

    kind: str
    rule: str
    options: Any = None
    """of the part's own class of settings"""

    def __post_init__(self) -> None:
        if self.options is None:
            object.__setattr__(self, "options", self.part.settings_type())

    @property
    def part(self) -> Part:
        """The part itself."""
        return part(self.kind, self.rule)

    def with_rule(self, rule: str, source: str) -> Choice:
        """Another part; options that both have keep their values."""
        new = part(self.kind, rule)
        known = {field.name for field in msgspec.structs.fields(new.settings_type)}
        kept = {name: value for name, value in msgspec.structs.asdict(self.options).items() if name in known}
        return Choice(self.kind, rule, read_settings(new.settings_type, kept, source, f"{self.kind}."))

    def with_options(self, **changes: Any) -> Choice:
        """The same part with other options, which are not checked again."""
        return Choice(self.kind, self.rule, msgspec.structs.replace(self.options, **changes))


class StatisticsSettings(Settings):
    """Where popularity and averages of items come from."""

    source: Annotated[
        Literal["participants", "secure-sum", "public"],
        text("exact figures of the participants (simulation only), one secure sum of theirs, or another data set"),
    ] = "participants"
    file: Annotated[str, text("ratings of other people, for source=public: a data set's name or a file")] = ""
    epsilon: Annotated[float, number(0, 1e3, "ε of the secure sum where there is no other budget; 0: exact sums")] = 0.0
    delta: Annotated[float, number(1e-15, 0.1, "δ of that, below 1/clients")] = 1e-5
    cap: Annotated[int, number(1, 10**6, "ratings of a person that count in full where there is no other budget")] = 50


class CohortSettings(Settings):
    """Which clients take part in a round."""

    fraction: Annotated[float, number(1e-9, 1, "share of all clients that is asked in a round")] = 1.0
    dropout: Annotated[float, number(0, 0.999, "share of the asked clients that never answers")] = 0.0
    sampling: Annotated[
        Literal["fixed", "poisson"], text("ask exactly that share, or each client by a coin of its own")
    ] = "fixed"


class ServerSettings(Settings):
    """How long the server goes on."""

    rounds: Annotated[int, number(1, 10**7, "T, communication rounds")] = 100
    cooldown: Annotated[float, number(0, 1, "share of the rounds, at the end, in which the step falls to 0")] = 0.0


class EvaluationSettings(Settings):
    """When to look at the test ratings, and what makes a list good."""

    every: Annotated[int, number(1, 10**7, "rounds between evaluations; the first and the last are, too")] = 10
    relevant_from: Annotated[
        float, number(1, 5, "a test item is relevant from this rating up, on the standard scale 1–5; of likes, all")
    ] = 4.0


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
            "of the engines fast and cuda; the reference always has float64, and so has cuda where clients choose "
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
    model: Choice = field(default_factory=lambda: Choice("model", "mf"))
    pseudo_items: Choice = field(default_factory=lambda: Choice("pseudo_items", "none"))
    virtual_ratings: Choice = field(default_factory=lambda: Choice("virtual_ratings", "user-average"))
    encoder: Choice = field(default_factory=lambda: Choice("encoder", "centred"))
    aggregation: Choice = field(default_factory=lambda: Choice("aggregation", "uniform"))
    channel: Choice = field(default_factory=lambda: Choice("channel", "clear"))
    privacy: Choice = field(default_factory=lambda: Choice("privacy", "none"))
    server_optimizer: Choice = field(default_factory=lambda: Choice("server_optimizer", "sgd"))
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    cohort: CohortSettings = field(default_factory=CohortSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All chosen parts."""
        return tuple(value for value in vars(self).values() if isinstance(value, Choice))

    @property
    def scores_lists(self) -> bool:
        """Whether lists are ranked by a score of their own; otherwise predicted ratings rank."""
        model = self.model
        if not model.part.has("list_weights"):
            return False
        return not model.part.has("scores_lists") or bool(model.part.scores_lists(model.options))

    @property
    def hides_rows(self) -> bool:
        """Whether there are pseudo items: where the channel shows no lists of items, there is nothing to hide."""
        return self.shows_rows and isinstance(self.pseudo_items.options, SetSettings)

    @property
    def shows_rows(self) -> bool:
        """Whether an upload shows which items are a client's: some channels don't, and some models upload all."""
        channel = self.channel
        if self.uploads_all_items:
            return False
        return bool(channel.part.shows_rows(channel.options)) if channel.part.has("shows_rows") else True

    def visible_rows(self, items: NDArray[np.int64], item_count: int) -> NDArray[np.int64]:
        """Which rows the server sees an upload to have, of an upload of these items."""
        channel = self.channel
        if channel.part.has("visible_rows"):
            return np.asarray(channel.part.visible_rows(items, item_count, channel.options))
        return items if self.shows_rows else items[:0]

    @property
    def answering(self) -> float:
        """The share of the asked clients that is in a round's sums, in a simulation."""
        channel = self.channel
        arriving = float(channel.part.arriving(channel.options)) if channel.part.has("arriving") else 1.0
        return (1.0 - self.cohort.dropout) * arriving

    @property
    def uploads_all_items(self) -> bool:
        """Whether every upload has a row of every item."""
        return self.model.part.has("ALL_ITEMS")

    @property
    def redraws(self) -> bool:
        """Whether clients draw new pseudo items each round."""
        return self.hides_rows and bool(self.pseudo_items.options.redraw)

    @property
    def chooses_by_V(self) -> bool:
        """Whether clients choose items by encoded items, anew in every round.

        Such a training is chaotic: V rounded to 32 bits once a round, and nothing else, moved the final RMSE by up to
        .03.
        """
        return self.redraws and bool(self.pseudo_items.part.needs("features"))

    @property
    def weighs_on_client(self) -> bool:
        """Whether clients weigh themselves."""
        return self.aggregation.part.has("weight") and self.aggregation.options.weigh_on == "client"

    def needs_on_device(self, what: str) -> bool:
        """Whether a part that runs on the device looks at something that is not always provided."""
        there = [self.model, self.channel]
        there += [self.pseudo_items, self.virtual_ratings] if self.hides_rows else []
        there += [self.aggregation] if self.weighs_on_client else []
        return any(chosen.part.needs(what) for chosen in there)

    @property
    def needs_features(self) -> bool:
        """Whether a part looks at encoded items, so that a broadcast needs them."""
        return self.needs_on_device("features") or self.aggregation.part.needs("features")

    @property
    def needs_uploads(self) -> bool:
        """Whether the server must see single uploads: sums are not enough."""
        how = self.aggregation
        if how.part.has("aggregate") or how.part.needs("uploads") or self.covariance != "none":
            return True
        return not self.weighs_on_client and not how.part.has("CONSTANT")

    @property
    def covariance(self) -> str:
        """Which covariance of updates the aggregation looks at: ``none``, ``diagonal`` or ``full``."""
        how = self.aggregation
        return str(how.part.covariance_kind(how.options)) if how.part.has("covariance_kind") else "none"
