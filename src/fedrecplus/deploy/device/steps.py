"""Whether V is what the task makes of it: the start of a public seed, then the steps of the sums that are told.

A server that chose V could make uploads say what it likes. A device that answered the round before has that round's
table, takes the step by itself, and refuses another one. One that missed rounds, or joins late, fetches their sums, as
many as the task says that its server keeps, and takes those steps too; who missed more takes V as it comes, and goes on
from there. Nobody but the server knows whether a sum is the one that was unmasked; it must be one that so many people
could have made.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.deploy.device.catalogues import load_catalogue
from fedrecplus.deploy.device.missed import Past, missed_sums
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Facts, Packet, Refusal
from fedrecplus.deploy.wire.request import Request, grouping_of, told_tables
from fedrecplus.deploy.wire.settings import config_of_text
from fedrecplus.deploy.wire.steps import first_state, grown_state, is_possible, next_state, of_run, sums_told
from fedrecplus.engines import SimulationState
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import Grouping
from fedrecplus.protocol import Sums
from fedrecplus.rounds import ServerState, cooldown

log = logging.getLogger("fedrecplus")
_STEPPED = {"V", "dense", "last_step"}
"""what a step says whole: clients weigh themselves by the last step"""
_CLOSE = 1e-4
"""of the largest number of V: what other processors may compute otherwise, and tables in single precision lose"""


def checked_state(store: Store, request: Request, catalogue: ItemCatalogue, past: Past | None) -> ServerState:
    """The server's state behind a request, as far as it is known here; ``Refusal`` where V isn't what it must be."""
    due = _due(store, request, catalogue, past)
    V, dense = (request.tables.get(name, np.zeros(0)).astype(np.float64) for name in ("V", "dense"))
    if due is None:
        return _taken_over(request, V, dense)
    for name in request.told.keys() & _STEPPED:
        wanted, table = getattr(due, name), request.told[name].astype(np.float64)
        most = _CLOSE * max(1.0, np.abs(wanted).max(initial=0.0))
        if wanted.shape != table.shape or np.abs(wanted - table).max(initial=0.0) > most:
            raise Refusal("task", f"round {request.round}: {name} is not what the task and the told sum make of it")
    return replace(due, V=V, dense=dense)


def _due(store: Store, request: Request, catalogue: ItemCatalogue, past: Past | None) -> ServerState | None:
    """What the state must be; None where this device has nothing to compute it from."""
    config, task = request.config, request.task
    begun = first_state(config, catalogue.first(task.size).public) if task.first <= 0 else None
    kept = load_state(store, request.model)
    if kept is not None and kept.round > request.round:  # a second table for it would be bound by nothing
        raise Refusal("task", f"round {request.round} is asked for, and round {kept.round} was answered before")
    state = begun if request.round == 0 else kept or begun
    if state is None or state.round == request.round:
        return state if state is None else grown_state(state, catalogue.public, config)
    missed = range(state.round, request.round - 1)
    if len(missed) > task.kept or len(state.moments) < config.server_optimizer.MOMENTS:
        why = f"{len(missed)} rounds were missed, and the server keeps sums of {task.kept}"
        log.warning("round %s: V is taken as the server tells it: %s", request.round, why)
        return None
    if request.sums is None:
        raise Refusal("task", f"round {request.round}: the sum that V was moved by is not told")
    last = (request.round - 1, request.sums, entry_of(request.leaf))
    for number, groups, entry in (*missed_sums(request, catalogue, missed, past), last):
        _check_range(groups, number, request, catalogue)
        state = _stepped(state, groups, catalogue, of_run(config, entry, number))
    return grown_state(state, catalogue.public, config)


def _stepped(state: ServerState, groups: Sequence[Sums], catalogue: ItemCatalogue, config: Config) -> ServerState:
    """After a round over the items that there were, which are as many as the sums'."""
    items = len(groups[0].total)
    if items < len(state.V):
        raise Refusal("task", "a sum of fewer items than there were")
    public = catalogue.first(items).public
    return next_state(grown_state(state, public, config), groups, public, config)


def entry_of(leaf: str) -> Facts:
    """What a round's entry says; nothing where its task has no log."""
    try:
        facts = json.loads(leaf or "{}")
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise Refusal("log", "an entry that says nothing")
    return facts


def _taken_over(request: Request, V: Array, dense: Array) -> ServerState:
    """A state that begins with this round's table; moments follow from the last step, where the optimizer has those."""
    step, last = request.tables["last_step"].astype(np.float64), request.round - 1
    config = of_run(request.config, entry_of(request.leaf), last)
    moments = config.server_optimizer.moments_of(step / max(cooldown(config, last), 1e-12), last)
    covariance = request.tables["last_covariance"].astype(np.float64)
    return ServerState(request.round, V, step, covariance, [] if len(dense) else moments, dense)


def _check_range(groups: Sequence[Sums], round_number: int, request: Request, catalogue: ItemCatalogue) -> None:
    """Refuse sums of fewer groups than stand for all, and those that so many people could not have made."""
    drawn = grouping_of(request.config, request.task, round_number) or Grouping(1, b"")
    if len(groups) > drawn.count or not drawn.enough(len(groups)):
        raise Refusal("task", f"sums of {len(groups)} groups, and the task has {drawn.count}")
    for sums in groups:
        if not is_possible(sums, catalogue.public, request.config):
            raise Refusal("task", f"a sum that {sums.clients} people could not have made")


def stepped_tables(store: Store, asked: Packet, sums: Packet) -> Packet | None:
    """The tables of a request, by this device's own step from the round before; None where it can't make it.

    Whoever asks compares digests: where another processor computed the server's, the tables are fetched and compared.
    """
    kept, catalogue = load_state(store, str(asked.facts["model"])), load_catalogue(store, str(asked.facts["catalogue"]))
    if kept is None or kept.round + 1 != asked.facts["round"] or catalogue is None:
        return None
    try:
        config = config_of_text(str(asked.facts["config"]), store.allowed_rules)
        of_last = of_run(config, entry_of(str(asked.facts.get("leaf", ""))), kept.round)
        stepped = _stepped(kept, sums_told(sums.arrays), catalogue, of_last)
        state = grown_state(stepped, catalogue.public, config)
    except (KeyError, ValueError, IndexError, UserError, Refusal):
        return None
    return Packet({}, told_tables(state, config))


def load_state(store: Store, model: str) -> ServerState | None:
    """The state of the last round of a model that was answered here."""
    content = store.value("SELECT content FROM states WHERE model = ?", model)
    if content is None:
        return None
    return SimulationState.of_arrays(Packet.of_bytes(content).arrays).server


def save_state(store: Store, model: str, state: ServerState) -> None:
    """Keep it in the place of the one before, within ``changing``."""
    store.put("states", [(model, Packet({}, SimulationState.of_server(state).arrays()).to_bytes())])
