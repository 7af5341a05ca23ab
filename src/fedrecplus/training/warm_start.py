"""Beginning a training with the table of an earlier one: known items keep their rows, new ones enter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines import Problem, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.rounds import ServerState, extend_server
from fedrecplus.training.model_files import SharedModel


@dataclass(frozen=True)
class Earlier:
    """The model that a training begins with, and where it comes from."""

    model: SharedModel
    folder: str | None

    @classmethod
    def of(cls, start: str | Path | SharedModel, config: Config) -> Earlier:
        """A run folder's model, or one that is at hand; what can't go on with these settings is refused."""
        folder = None
        if isinstance(start, str | Path):
            folder = str(Path(start).expanduser().resolve())
            start = SharedModel.read(Path(folder), [chosen.rule for chosen in config.choices])
        _check(start, config)
        return cls(start, folder)

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
        return replace(state, server=replace(state.server, V=V, dense=dense))

    def places(self, item_ids: NDArray[Any]) -> NDArray[np.int64]:
        """Where each item is in the earlier model, by id; -1 for a new one."""
        places = {str(name): number for number, name in enumerate(self.model.item_ids.tolist())}
        numbers = np.array([places.get(str(name), -1) for name in item_ids.tolist()], dtype=np.int64)
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


def _check(model: SharedModel, config: Config) -> None:
    chosen, earlier = config.model, model.config.model
    if chosen.kept(1) > 0:
        raise UserError(
            f"model.rule = {chosen.rule!r} keeps factors on devices, which the earlier model's file has not",
            "take a model that solves for them anew: reconstruction, ials, joint",
        )
    columns = model.V.shape[1]
    if chosen.rule != earlier.rule or chosen.columns != columns:
        raise UserError(
            f"the model to begin with is {earlier.rule!r} with {columns} columns, the settings ask for another",
            "leave --algorithm and its factors as they were in that run",
        )
    if isinstance(config.privacy, BudgetMechanism):
        raise UserError(
            "a privacy budget covers what is released from now on, not the model that this training would begin with",
            "begin without an earlier model",
        )
