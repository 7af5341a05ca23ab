"""Beginning a training with the table of an earlier one: known items keep their rows, new ones enter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, load_config
from fedrecplus.data import Ratings
from fedrecplus.engines import Problem, SimulationState, statistics_budget
from fedrecplus.errors import UserError
from fedrecplus.parts import VALIDATED
from fedrecplus.parts.model import Model
from fedrecplus.parts.model.sequence import Sequence, with_transitions
from fedrecplus.rounds import ServerState, extend_server, neighbouring, plan_of
from fedrecplus.training.model_files import CLIENTS, PrivateParts, SharedModel
from fedrecplus.training.privacy import LEDGER, Line, privacy_lines, run_name
from fedrecplus.training.recommender import Recommender, places_among
from fedrecplus.training.run_folder import CONFIG, RunFolder

_SHARE = 5
"""of the rounds that it took anew, so few go on"""
_FEWEST = 3


def continued(model: SharedModel, config: Config, *, again: bool = False) -> Config:
    """The settings that go on from a model: a fifth of the rounds it took, its decay of lists, and all its tables.

    What went on itself, goes on by as many rounds ``again``.
    """
    rounds = config.server.rounds if again else min(config.server.rounds, max(_FEWEST, config.server.rounds // _SHARE))
    server = msgspec.structs.replace(config.server, rounds=rounds)
    chosen = config.model.with_settings(recency=model.decay) if config.model.recency == VALIDATED else config.model
    config = replace(config, model=chosen, server=server)
    added = isinstance(model.config.model, Sequence) and not isinstance(chosen, Sequence)
    return with_transitions(config) if added else config


def head_of(model: Model[Any], ended: Model[Any]) -> tuple[int, ...]:
    """Which candidates validation chose for a model that ended with these settings: no table is trained with them."""
    head = []
    for choice in model.head_choices():
        names = {name for changes in choice.candidates for name in changes}
        fits = [
            all({**model.values, **changes}[name] == ended.values[name] for name in names)
            for changes in choice.candidates
        ]
        head.append(fits.index(True) if any(fits) else 0)
    return tuple(head)


@dataclass(frozen=True)
class Earlier:
    """The model that a training begins with, and where it comes from."""

    model: SharedModel
    folder: str | None
    spent: tuple[Line, ...] = ()
    """the ledger's lines of all that was released for it, of runs before it, too"""
    clients: PrivateParts | None = None
    """what it was trained on, where that is at hand"""

    @classmethod
    def of(cls, start: str | Path | Recommender | SharedModel, config: Config) -> Earlier:
        """A run folder's model, or one that is at hand; what can't go on with these settings is refused."""
        folder: str | None = None
        spent: tuple[Line, ...] = ()
        if isinstance(start, str | Path):
            path, rules = Path(start).expanduser().resolve(), [chosen.rule for chosen in config.choices]
            folder, spent = str(path), _spent(path, rules)
            start = Recommender.load(path, rules) if (path / CLIENTS).exists() else SharedModel.read(path, rules)
        model, clients = (start.model, start.clients) if isinstance(start, Recommender) else (start, None)
        if not isinstance(config.model, Sequence):
            model = model.without_transitions()
        _check(model, config, spent)
        return cls(model, folder, spent, clients)

    def begin(self, problem: Problem, state: SimulationState) -> SimulationState:
        """The state before the first round, with the earlier rows of known items and rows for new ones.

        A new row is what the item's public features predict from the others' rows (``rounds.extend_server``).
        """
        places = self.places(problem.ratings.item_ids)
        known, new = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        order = np.concatenate([known, new])
        rows = self.model.V[places[known]].astype(state.server.V.dtype)
        before = ServerState(0, rows, rows * 0, state.server.last_covariance[:0], [])
        dense = self.model.dense.astype(state.server.dense.dtype)
        of_known, of_all = (problem.public.of_items(items) for items in (known, order))
        grown = extend_server(before, of_known, of_all, problem.config)
        V = np.empty_like(state.server.V)
        V[order] = grown.V
        head = head_of(problem.config.model, self.model.config.model)
        return replace(state, server=replace(state.server, V=V, dense=dense, head=head))

    def came_since(self, ratings: Ratings) -> NDArray[np.bool_]:
        """Which ratings the model wasn't trained on."""
        assert self.clients is not None
        before, places = self.clients, self.places(ratings.item_ids)
        who, count = places_among(before.client_ids, ratings.client_ids), len(self.model.item_ids)
        known = np.repeat(np.arange(len(before.client_ids)), np.diff(before.indptr)) * count + before.items
        client, item = who[ratings.client_of_rating], places[ratings.items]
        return np.asarray((client < 0) | (item < 0) | ~np.isin(client * count + item, known))

    def places(self, item_ids: NDArray[Any]) -> NDArray[np.int64]:
        """Where each item is in the earlier model, by id; -1 for a new one."""
        numbers = places_among(self.model.item_ids, item_ids)
        if not (numbers >= 0).any():
            examples = [", ".join(map(str, ids[:3].tolist())) for ids in (self.model.item_ids, item_ids)]
            raise UserError(
                f"the model to begin with knows none of these items: it has {examples[0]}, the ratings {examples[1]}",
                "give ratings whose item ids mean the same, or begin without it",
            )
        return numbers

    def figures(self, item_ids: NDArray[Any]) -> dict[str, Any]:
        """For ``result.json``: where it began, and how many items were known there."""
        known = int((self.places(item_ids) >= 0).sum())
        return {"folder": self.folder, "known_items": known, "new_items": len(item_ids) - known}


def _spent(folder: Path, allow: list[str]) -> tuple[Line, ...]:
    """What the run's ledger says of it; nothing where it had no budget."""
    if not (folder / LEDGER).exists() or not (folder / CONFIG).exists():
        return ()
    data = RunFolder(folder).data()
    name = run_name(load_config(folder / CONFIG, allow), f"{data.get('fingerprint')} {data.get('run', '')}")
    return tuple(line for line in privacy_lines(folder / LEDGER) if line["run"] == name)


def _check(model: SharedModel, config: Config, spent: tuple[Line, ...]) -> None:
    chosen, earlier = config.model, model.config.model
    if chosen.kept(1) > 0:
        raise UserError(
            f"model.rule = {chosen.rule!r} keeps factors on devices, which the earlier model's file has not",
            "take a model that solves for them anew: reconstruction, ials, joint, sequence",
        )
    columns = model.V.shape[1]
    if chosen.rule != earlier.rule or chosen.columns != columns:
        raise UserError(
            f"the model to begin with is {earlier.rule!r} with {columns} columns, the settings ask for another",
            "leave --algorithm and its factors as they were in that run",
        )
    _check_budget(model.config, config, spent)


def _check_budget(earlier: Config, config: Config, spent: tuple[Line, ...]) -> None:
    """Refuse a claim that would leave out what the earlier model has told."""
    plan = plan_of(config)
    if plan is None and statistics_budget(config) is None:
        return
    if not spent or (plan is not None and plan_of(earlier) is None):
        raise UserError(
            "a privacy budget covers what is released from now on, and of the model that this training would begin "
            "with no ledger tells what it has spent",
            "begin with the folder of a run that had a budget, too, or without an earlier model",
        )
    if neighbouring(earlier) != neighbouring(config):
        raise UserError(
            f"the earlier model's ε is for {neighbouring(earlier)}, that of these settings for {neighbouring(config)}",
            "leave --noise and the channel as they were in that run",
        )
