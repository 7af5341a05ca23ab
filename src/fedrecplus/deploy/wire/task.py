"""What a device computes for a server, as one document that its owner agrees to; anything else is refused.

Whoever sends settings with each question can send others with the next. A task fixes them all: model, bounds, channel,
rows, noise and how many devices share it, statistics, items, and how many rounds there are. An invitation names a task
by its digest, devices keep those that their owners agreed to, and a question is looked at beside its task before
anything else is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from functools import cached_property
from typing import Annotated

import msgspec
import numpy as np

from fedrecplus.config import Config, check, from_tables, preset, presets, refuse_outside
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Refusal
from fedrecplus.deploy.wire.settings import fixed_settings
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import RingSettings, least_persons
from fedrecplus.parts.channel.secure import Settings as SecureSettings
from fedrecplus.parts.privacy.distributed import Distributed

LONGEST_TASK = 64 * 2**10
"""bytes of a document"""
_Count = Annotated[int, msgspec.Meta(ge=0)]


class Task(msgspec.Struct, frozen=True, dict=True):
    """The document. Its text is its fields as JSON, in this order; its name is the SHA-256 of that."""

    model: str
    """name that devices keep their part of the model under"""
    settings: str
    """all that must not change, as JSON: see ``fixed_settings``"""
    rounds: Annotated[int, msgspec.Meta(ge=1)]
    """in all, also where later runs go on with the model"""
    catalogue: str
    """digest of the items and their figures as the task begins"""
    items: str
    """digest of the items without figures, which statistics of the participants may take the place of"""
    first: Annotated[int, msgspec.Meta(ge=-1)] = 0
    """the round that it begins with; −1 where statistics come before the first"""
    log: str = ""
    """public key that signs its log, in hexadecimal; empty where it has none"""
    size: _Count = 0
    """items as it begins"""
    growth: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    """items that may be added after these, in the log, as a share of them"""
    kept: _Count = 0
    """rounds whose sums its server keeps, for devices that missed them"""

    @classmethod
    def of(
        cls, model: str, config: Config, catalogue: ItemCatalogue, rounds: int = 0, first: int = 0, log: str = "",
        growth: float = 0.0, kept: int = 0,
    ) -> Task:  # fmt: skip
        """The task of a run; of more ``rounds`` than its own where others are to follow."""
        rounds, items = max(rounds, config.server.rounds), (catalogue.digest, catalogue.items_digest)
        return cls(model, fixed_settings(config), rounds, *items, first, log, len(catalogue.ids), growth, kept)

    @classmethod
    def parse(cls, text: str) -> Task:
        """What ``text`` gave; a ValueError for anything else."""
        task = msgspec.json.decode(text, type=cls)
        if task.text != text or len(text) > LONGEST_TASK:
            raise ValueError("no task's own text")
        return task

    @cached_property
    def text(self) -> str:
        """The document."""
        return msgspec.json.encode(self).decode()

    @cached_property
    def digest(self) -> str:
        """Its name."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def config(self, allowed_rules: Collection[str] = ()) -> Config:
        """Its settings; a UserError where they name rules from outside that the owner doesn't let in."""
        tables = json.loads(self.settings)
        refuse_outside(tables, allowed_rules, "a task")
        tables.setdefault("server", {}).setdefault("rounds", self.rounds)
        return check(from_tables(tables))

    def check(self, model: str, config: Config, round_number: int, catalogue: ItemCatalogue) -> None:
        """Refuse a question that is none of this task's."""
        if model != self.model or fixed_settings(config) != self.settings:
            raise Refusal("task", "a model or settings that are not the task's")
        if not round_number < config.server.rounds <= self.rounds:
            raise Refusal("task", f"round {round_number} of {config.server.rounds}, and the task has {self.rounds}")
        begun = catalogue.first(self.size)
        if begun.digest != self.catalogue and not self._has_statistics(config, begun):
            raise Refusal("task", "a catalogue that is not the task's")
        if len(catalogue.ids) > self.most_items:
            raise Refusal("task", f"{len(catalogue.ids)} items, and the task has {self.most_items} at most")
        _check_added(catalogue, self.size)

    def has_room(self, rounds: int, items: int) -> bool:
        """Whether so many rounds and items are within what was agreed to."""
        return rounds <= self.rounds and items <= self.most_items

    @property
    def most_items(self) -> int:
        """Items that there may ever be."""
        return self.size + int(self.growth * self.size + 1e-9)

    def _has_statistics(self, config: Config, catalogue: ItemCatalogue) -> bool:
        """Whether these are the task's items with figures that its own noised sum may have."""
        public = catalogue.public
        ours = catalogue.items_digest == self.items and config.statistics.source == "secure-sum"
        noised = public.source == "secure-sum" and public.epsilon is not None
        averages = np.append(public.average, public.mean)
        return bool(ours and noised and ((averages >= 1.0) & (averages <= 5.0)).all())

    def words(self, allowed_rules: Collection[str] = ()) -> list[str]:
        """What its owner agrees to, in plain words."""
        try:
            config = self.config(allowed_rules)
        except UserError as error:
            return [f"task {self.digest[:16]}: {' '.join(error.problem.split())}"]
        return [
            f"task {self.digest[:16]}: the model {_model_of(config)} in {self.rounds} rounds at most, "
            f"{self.size} items ({self.items[:16]})"
            + (f", and up to {self.most_items - self.size} that come later" if self.growth else ""),
            *_way_of(config, config.model.columns),
            *_noise_of(config),
            *self._tables(),
            f"  its rounds are in a public log, signed by {self.log[:16]}"
            if self.log
            else "  NO public log of its rounds",
        ]

    def _tables(self) -> list[str]:
        """Of which tables devices must believe the server."""
        begun = "  it begins with a table that the server has: where that comes from is the server's word"
        kept = f"  whoever misses more than {self.kept} rounds takes the table as the server tells it"
        return [begun] * (self.first > 0) + [kept] * (self.kept < self.rounds)


def _check_added(catalogue: ItemCatalogue, size: int) -> None:
    """Refuse figures of items that came later which none of the first has: they weigh in what devices compute."""
    for name, within in catalogue.first(size).bounds.items():
        table = getattr(catalogue.public, name)[size:]
        if (table != within(table)).any():
            raise Refusal("task", f"an added item whose {name} is beyond that of all before")


def _model_of(config: Config) -> str:
    """A preset's name where the model is that preset's: what a server calls it is text of its own."""
    named = config.algorithm in presets() and preset(config.algorithm).model.rule == config.model.rule
    return config.algorithm if named else f"of model.rule={config.model.rule}, which is no preset's,"


def _way_of(config: Config, columns: int) -> list[str]:
    """How uploads leave."""
    ring = config.channel.settings
    if not isinstance(ring, RingSettings):
        return ["  the server sees each of your uploads: it can compute every rating from it"]
    lines = [
        f"  the server sees sums over people: {columns} numbers of each item's row, none of yours beyond "
        f"{ring.bound:g}; rows that fewer than {ring.fewest_contributors} are expected to have rated are left out"
    ]
    if beside := config.model.statistic_size:
        lines.append(f"  and {beside} numbers beside the rows, none of yours beyond {ring.statistic_bound:g}")
    if ring.counts_raters(all_items=config.model.ALL_ITEMS):
        lines.append("  sums COUNT exactly how many in them rated each item: two of them tell what a newcomer rated")
    lines.append("  sums are no secret: everybody who takes part is told them, and whoever reaches the server may ask")
    if config.shows_rows:
        ratio = config.pseudo_items.ratio
        lines.append(f"  the server SEES which rows you send: items you rated, and {ratio:g} others for each of them")
    if isinstance(ring, SecureSettings) and ring.groups > 1:
        lines.append(f"  people fall into {ring.groups} random groups with a sum each, so that few who spoil do little")
    if config.channel.demonstration:
        return [*lines, "  A DEMONSTRATION: sums of so few people that they can be taken apart"]
    return [*lines, f"  a sum is of {least_persons(columns)} people at least, or hidden by noise"]


def _noise_of(config: Config) -> list[str]:
    """What noise hides, and what it costs."""
    lines = []
    if config.privacy.rule == "none":
        lines.append("  no noise: what a sum says of you is not bounded")
    else:
        budget, shared = config.privacy.settings, ""
        if isinstance(config.privacy, Distributed):
            shared = f", shared by {config.privacy.settings.devices or 'as many as the server says'} devices"
            shared += f", of which {config.privacy.settings.honest:.0%} must add theirs"
        by = f"noise ({config.privacy.rule})"
        if not config.privacy.NOISE_ON_DEVICES:
            by = "noise that the SERVER adds, so that nothing bounds what it sees itself; against others"
        lines.append(f"  {by}: ε = {budget.epsilon:g}, δ = {budget.delta:g} for all of it{shared}")
    if config.statistics.epsilon > 0.0 and config.privacy.rule == "none":
        sharing = config.statistics.devices or "as many as the server says"
        lines.append(
            f"  before it a count of who rated what, with noise: ε = {config.statistics.epsilon:g}, "
            f"shared by {sharing} devices"
        )
    return lines
