"""What the server asks a node in a round, and which settings may travel.

Factors travel in ``Config.precision``: with float64 a deployed round equals a simulated one bit for bit, with float32
(the default) messages are half as long and differ by rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, check
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.log import LogHead
from fedrecplus.deploy.wire.packet import VERSION, Facts, Packet, Refusal, mismatch
from fedrecplus.deploy.wire.settings import config_of_text, fixed_settings, told_text
from fedrecplus.deploy.wire.stages import FIRST, Stage, is_secure
from fedrecplus.deploy.wire.steps import SUM, sum_arrays, sums_told
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UnknownName, UserError
from fedrecplus.parts.channel import Grouping, RingSettings
from fedrecplus.parts.channel.secure import Settings as SecureSettings
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.parts.privacy.distributed import Distributed
from fedrecplus.protocol import Broadcast, Sums
from fedrecplus.rounds import ServerState, broadcast, encode_items

_CATALOGUE = "catalogue."
_LARGEST = {"V": 1e3, "last_step": 1e3, "last_covariance": 1e6, "dense": 1e3}
"""the tables of a request, and the greatest number of each: factors are of the size of ratings, on a scale of 1 to 5"""


@dataclass(frozen=True)
class Request:
    """A request as a node understands it."""

    model: str
    config: Config
    round: int
    tables: dict[str, NDArray[Any]]
    """V, the dense arrays where the model has any and, where clients weigh themselves, the last step and covariance"""
    catalogue: str
    """digest of the catalogue"""
    task: Task
    """what the owner agreed to, as the server says"""
    attached: ItemCatalogue | None
    """the catalogue itself, for nodes that may not have it"""
    size: int
    """bytes"""
    sums: Sequence[Sums] | None = None
    """of the round before, which V was moved by; None in the first round, and where it was not asked for"""
    told: dict[str, NDArray[Any]] = field(default_factory=dict)
    """the tables as they came"""
    leaf: str = ""
    """this round's entry in the task's log"""
    log: LogHead | None = None
    session: bytes = b""
    """of the secure sum that the round's uploads are for; empty where the server sees uploads"""
    pinned: bool = False
    """whether participants of the sum sign with identities that everybody has pinned"""

    @property
    def grouping(self) -> Grouping | None:
        """How those who take part fall into groups with a sum each; None where all are in one."""
        return grouping_of(self.config, self.task, self.round)

    @property
    def V(self) -> NDArray[Any]:
        """The item table."""
        return self.tables["V"]

    @cached_property
    def digest(self) -> str:
        """A hash over what a reply depends on."""
        facts: Facts = {"catalogue": self.catalogue, "round": self.round, "settings": fixed_settings(self.config)}
        return Packet(facts, self.tables).digest

    @cached_property
    def sum_session(self) -> bytes:
        """What the secure sum is called within its protocol: the server's session, bound to all that was asked.

        Each side computes it by itself. Nodes that were asked for other things (V, settings, catalogue, round, model)
        can't open each other's shares and refuse each other's signatures, so no sum comes of them.
        """
        facts: Facts = {"session": self.session.hex(), "model": self.model, "round": self.round}
        facts |= {"catalogue": self.catalogue, "settings": fixed_settings(self.config), "pinned": int(self.pinned)}
        facts |= {"task": self.task.digest, "log": "" if self.log is None else self.log.root.hex()}
        return Packet(facts, self.tables).sha256

    def message(self, catalogue: ItemCatalogue) -> Broadcast:
        """The round's broadcast; encoded items are computed here, from what everybody knows."""
        V, step, covariance = (self.tables[name].astype(np.float64) for name in ("V", "last_step", "last_covariance"))
        dense = self.tables.get("dense", np.zeros(0)).astype(np.float64)
        state = ServerState(self.round, V, step, covariance, [], dense)
        return broadcast(state, catalogue.public, encode_items(V, catalogue.public, self.config))


def grouping_of(config: Config, task: Task, round_number: int) -> Grouping | None:
    """How a round's cohort falls into groups, by task and round; statistics are of all in one."""
    ring = config.channel.settings
    if not isinstance(ring, SecureSettings) or ring.groups == 1 or round_number < 0:
        return None
    return Grouping(ring.groups, bytes.fromhex(task.digest) + round_number.to_bytes(8, "big"))


def encode_request(
    model: str, state: ServerState, config: Config, catalogue: ItemCatalogue, *, attach: bool, session: bytes = b"",
    pinned: bool = False, task: Task | None = None, sums: Sequence[Sums] | None = None,
    leaf: str = "", log: LogHead | None = None,
) -> Packet:  # fmt: skip
    """The packet of a request. Last step and covariance go along only where clients weigh themselves.

    With a session it is the first stage of a secure sum as well. Where no ``task`` is given, it is the one of a run
    with these settings and items. ``sums`` are those that V was moved by, as they were told.
    """
    arrays = told_tables(state, config)
    if sums is not None:
        arrays.update(sum_arrays(sums, config))
    if log is not None:
        arrays.update(log.arrays())
    if attach:
        arrays.update({_CATALOGUE + name: table for name, table in catalogue.arrays().items()})
    task = task or Task.of(model, config, catalogue)
    facts: Facts = {"version": VERSION, "model": model, "round": state.round, "task": task.text, "leaf": leaf}
    if session:
        facts |= {**Stage(model, state.round, session, FIRST).facts, "pinned": int(pinned)}
    return Packet({**facts, "config": told_text(config), "catalogue": catalogue.digest}, arrays)


def told_tables(state: ServerState, config: Config) -> dict[str, NDArray[Any]]:
    """The tables of a request; whoever makes the server's step by itself has the same."""
    told = config.needs_on_device("last_step") or config.aggregation.weighs_on_client
    names = ["V", *(["last_step", "last_covariance"] if told else []), *(["dense"] if state.dense.size else [])]
    return {name: getattr(state, name).astype(config.precision) for name in names}


def decode_request(packet: Packet, allowed_rules: Collection[str] = ()) -> Request:
    """The request in a packet; ``Refusal`` where it makes no sense or names a rule that the node doesn't let in.

    A rule's name may be an import path, so a server could make a node run any code that is installed on it: only
    built-in rules are looked up, and those that the node's owner allowed (``node join --allow-rule``).
    """
    wrong = mismatch(packet.facts.get("version"), "the server")
    if wrong:
        raise Refusal("version", wrong)
    try:
        config = config_of_text(str(packet.facts.get("config")), allowed_rules)
    except UnknownName as error:  # of the same protocol, so it came later
        raise Refusal("version", f"{error.problem} in the server's config: upgrade this node") from None
    except UserError as error:
        raise Refusal("rule", error.for_shell) from None
    try:
        return _decode(packet, check_deployable(check(config)))
    except (KeyError, TypeError, ValueError, OverflowError, UserError) as error:
        raise Refusal("request", f"the server's request makes no sense: {error}") from None


def _decode(packet: Packet, config: Config) -> Request:
    facts, tables = packet.facts, dict(packet.arrays)
    attached = {name[len(_CATALOGUE) :]: tables.pop(name) for name in packet.arrays if name.startswith(_CATALOGUE)}
    summed = {name: tables.pop(name) for name in packet.arrays if name.startswith(SUM)}
    task = Task.parse(str(facts["task"]))
    log, V = LogHead.of_arrays(task.digest, tables), tables["V"]
    for name, table in tables.items():
        _check_table(name, table, V)
    dense = config.model.dense_size if int(facts["round"]) >= 0 else 0
    if tables.get("dense", np.zeros(0)).shape != (dense,) or ("dense" in tables) != (dense > 0):
        raise ValueError(f"other dense arrays than those of model.rule={config.model.rule}")
    int(str(facts["model"]), 16)
    return Request(
        model=str(facts["model"]),
        config=config,
        round=int(facts["round"]),
        tables={"last_step": np.zeros_like(V), "last_covariance": np.zeros((0, V.shape[1]), V.dtype), **tables},
        catalogue=str(facts["catalogue"]),
        task=task,
        attached=ItemCatalogue.of_arrays(attached) if attached else None,
        size=packet.size,
        sums=_sums(summed, V),
        told=tables,
        leaf=str(facts.get("leaf", "")),
        log=log,
        session=_session(facts, config),
        pinned=bool(facts.get("pinned", 0)),
    )


def _check_table(name: str, table: NDArray[Any], V: NDArray[Any]) -> None:
    """Refuse tables that no training has: a server could choose them to break, or to saturate, what devices compute."""
    beside = name == "dense" or (table.ndim == 2 and table.shape[1:] == V.shape[1:])
    if name not in _LARGEST or table.dtype.kind != "f" or not beside:
        raise ValueError(f"{name[:20]} is no table of numbers beside V")
    if name == "last_step" and len(table) != len(V):
        raise ValueError("a last step of other items than V's")
    if not (np.abs(table) <= _LARGEST[name]).all():  # not a number is refused too
        raise ValueError(f"{name} has numbers beyond {_LARGEST[name]:g}")


def _sums(arrays: dict[str, NDArray[Any]], V: NDArray[Any]) -> list[Sums] | None:
    """The sums that V was moved by; a ValueError where they are another table's."""
    sums = sums_told(arrays) if arrays else None
    if any(one.total.shape[1:] != V.shape[1:] or len(one.total) > len(V) for one in sums or ()):  # items may have come
        raise ValueError("a sum of another table")
    return sums


def _session(facts: Facts, config: Config) -> bytes:
    """Of the secure sum where the channel is one, and nowhere else: an upload must not go another way than it says."""
    if is_secure(config) != ("session" in facts):
        raise ValueError(f"channel.rule={config.channel.rule} with or without a secure sum")
    return Stage.of(facts).session if is_secure(config) else b""


def check_deployable(config: Config) -> Config:
    """Refuse what only a simulation can do."""
    if config.engine == "central":
        raise UserError("training in one place needs no deployment", "choose a federated preset, or engine=fast")
    if config.model.leaks:
        raise UserError("negatives that leave out the test are for simulation", "set model.leaky_negatives=false")
    if config.model.turn(config, 0) is not None:
        raise UserError(
            f"model.rule={config.model.rule}: its tables take turns, which deployments don't know yet",
            "choose another model, such as joint",
        )
    if config.simulation_only:
        raise UserError("simulation_only = true is for simulation", "leave --simulation-only out")
    if config.seeded_noise:
        raise UserError("seeded_noise = true is for simulation: whoever knows the seed knows the noise", "leave it out")
    channel = config.channel
    if not is_secure(config) and (channel.SIMULATION_ONLY or channel.exchanges or channel.VIEW != "uploads"):
        why = "a deployment carries uploads in the clear or secure sums"
        raise UserError(
            f"channel.rule={config.channel.rule} is for simulation: {why}", "set channel.rule=clear or secure"
        )
    if is_secure(config):
        _check_secure(config)
    if config.model.statistic_size and not is_secure(config):
        raise UserError(
            f"model.rule={config.model.rule} uploads numbers beside its rows, dense arrays or a statistic, and a "
            "deployment takes those in secure sums alone",
            "set channel.rule=secure, or choose another model",
        )
    _check_noise(config)
    if config.privacy.amplifies:
        raise UserError(
            "privacy.amplification=true is for simulation: a deployment's server sees who takes part and notes it "
            "in the journal, and cohorts that are empty or fail are drawn anew",
            "set privacy.amplification=false",
        )
    if config.cohort.dropout > 0:
        raise UserError("cohort.dropout simulates what a deployment has anyway", "set cohort.dropout=0")
    if config.aggregation.covariance_kind == "full":
        raise UserError("aggregation.covariance=full is for simulation", "set aggregation.covariance=diagonal")
    return config


def _check_secure(config: Config) -> None:
    how = config.channel.settings
    if how.cryptography != "computed":
        raise UserError(
            "channel.cryptography=skipped hides nothing; it is for simulation", "set channel.cryptography=computed"
        )
    if how.dropout > 0:
        raise UserError("channel.dropout simulates what a deployment has anyway", "set channel.dropout=0")


def _check_noise(config: Config) -> None:
    """Refuse noise that hides nothing on a real device, and clips that the ring has no room for."""
    rule, ring = config.privacy.rule, config.channel.settings
    if rule == "local":
        raise UserError(
            "privacy.rule=local is for simulation: its noise is drawn from a node's stored key, in floating point, and "
            "its ε is that of one number",
            "set privacy.rule=distributed, whose noise is an integer from a generator that the operating system seeds",
        )
    if rule == "distributed" and not is_secure(config):
        raise UserError(
            f"privacy.rule=distributed with channel.rule={config.channel.rule}: a share of the noise hides no upload",
            "set channel.rule=secure",
        )
    if not isinstance(config.privacy, BudgetMechanism) or not isinstance(ring, RingSettings):
        return
    honest = config.privacy.settings.honest if isinstance(config.privacy, Distributed) else 0.0
    corrupted = ring.corrupted if isinstance(ring, SecureSettings) else 0.0
    if honest + corrupted > 1.0:
        raise UserError(
            f"privacy.honest={honest:g} and channel.corrupted={corrupted:g}: a share of {honest + corrupted:g} of the "
            "nodes would have to answer",
            "set privacy.honest or channel.corrupted lower: who colludes with the server adds no noise",
        )
    clip = config.privacy.settings.clip
    if clip > min(ring.bound, ring.statistic_bound):
        raise UserError(
            f"privacy.clip={clip:g} beyond channel.bound or statistic_bound, which would clip what the noise is for",
            f"set channel.bound and channel.statistic_bound to {clip:g} or more",
        )
