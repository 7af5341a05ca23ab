"""The server's half: it asks silos for sums, takes the step of ``fedrecplus.rounds``, and writes the model.

What it sees of a silo: how many people it speaks for; their sum where the channel is in the clear, and under ``secure``
the sum of all silos alone; with ``evaluate``, errors added up over the silo's people.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from flwr.serverapp import Grid, ServerApp

import fedrecplus as fr
from fedrec_silos.records import added, arrays_of, broadcast_arrays, content, facts_of, sums_of
from fedrecplus.config import Config, assign, change, check, dumps, load_config, preset, presets, to_tables
from fedrecplus.data import load
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.channel import decode, encoding_for, layout_of, least_persons
from fedrecplus.parts.channel.secure.messages import Refused
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import Aborted, ServerOptions
from fedrecplus.protocol import Sums
from fedrecplus.provenance import Stopwatch
from fedrecplus.rounds import ServerState, broadcast, released, server_round, start_server
from fedrecplus.training.evaluation import Scores
from fedrecplus.training.model_files import nobodys_parts
from fedrecplus.training.publishing import PUBLIC_LIST
from fedrecplus.training.run import channel_of
from fedrecplus.training.run_folder import RunFolder

app = ServerApp()
log = logging.getLogger("flwr")
STAGES = ("advertise", "share", "mask", "reveal")


@app.main()
def main(grid: Grid, context: Context) -> None:
    """All rounds of a training."""
    try:
        _train(grid, context)
    except UserError as error:
        log.error("%s", error)
        raise SystemExit(1) from None


def _train(grid: Grid, context: Context) -> None:
    settings, began = dict(context.run_config), time.monotonic()
    federation = Federation.of(grid, settings)
    config, state = federation.config, start_server(federation.config, federation.catalogue.public)
    folder = RunFolder(Path(str(settings["out"])).expanduser().absolute()) if settings["out"] else None
    if folder is not None:
        folder.begin(config, {"dataset": settings["dataset"] or "silos"}, overwrite=False)
    while state.round < config.server.rounds:
        sums = federation.sums(state)
        public = federation.catalogue.public
        state = server_round(
            state, released(sums, state.round, public, config, asked=federation.people), public, config
        )
        log.info("round %d of %d: %d people", state.round, config.server.rounds, sums.clients)
    errors = federation.errors(state)
    if errors.ratings:
        log.info("on %d held-back ratings: RMSE %.4f, MAE %.4f", errors.ratings, errors.rmse, errors.mae)
    if folder is not None:
        federation.catalogue.model(config, state.V, state.dense).write(folder.path)
        nobodys_parts().write(folder.path)
        folder.finish(_result(config, errors, time.monotonic() - began))
        log.info("the model is in %s", folder.path)


@dataclass
class Federation:
    """The silos of a run, and what they agreed to compute."""

    grid: Grid
    config: Config
    catalogue: ItemCatalogue
    terms: Mapping[str, Any]
    """what every silo is told when it joins"""
    least: int
    timeout: float
    sizes: dict[int, int] = field(default_factory=dict)
    """silo → its people"""

    @classmethod
    def of(cls, grid: Grid, settings: Mapping[str, Any]) -> Federation:
        """Settings and items, checked before a silo is asked for anything."""
        config, catalogue = config_of(settings), _catalogue(settings)
        check_figures(config, catalogue)
        terms = {"config": dumps(config), "dataset": str(settings["dataset"]), "fold": int(settings["fold"])}
        least = max(int(settings["least-silos"]), 3 if config.channel.rule == "secure" else 1)
        return cls(grid, config, catalogue, terms, least, float(settings["timeout"]))

    @property
    def people(self) -> int:
        """Of all silos that joined."""
        return sum(self.sizes.values())

    @property
    def least_people(self) -> int:
        """Whom a round must be of: silos refuse secure sums that can be taken apart."""
        channel, columns = self.config.channel, self.config.model.columns
        apart = channel.rule == "secure" and not channel.demonstration
        return max(channel.least_cohort, math.ceil(least_persons(columns) / self.config.cohort.fraction) * apart)

    def sums(self, state: ServerState) -> Sums:
        """A round's sums over all silos; tried again where silos vanished in between."""
        for _ in range(3):
            try:
                self.join()
                return self._secure(state) if self.config.channel.rule == "secure" else self._clear(state)
            except (Aborted, TooFew) as reason:
                log.warning("round %d begins again: %s", state.round + 1, reason)
        raise UserError(f"round {state.round + 1} found too few silos three times", "start more SuperNodes")

    def join(self) -> None:
        """Ask silos that are new, or that lost their state, how many people they speak for."""
        deadline = time.monotonic() + self.timeout
        while len(nodes := set(self.grid.get_node_ids())) < self.least and time.monotonic() < deadline:
            time.sleep(0.5)
        self.sizes = {node: people for node, people in self.sizes.items() if node in nodes}
        asked = {node: content(self.catalogue.arrays(), **self.terms) for node in sorted(nodes - self.sizes.keys())}
        for node, reply in self._ask("query", asked).items():
            self.sizes[node] = int(facts_of(reply)["people"])
        least = self.least_people
        if len(self.sizes) < self.least or self.people < least:
            raise TooFew(f"{len(self.sizes)} silos with {self.people} people; {self.least} and {least} are needed")

    def errors(self, state: ServerState) -> Scores:
        """Over all ratings that silos hold back."""
        told = broadcast_arrays(broadcast(state, self.catalogue.public, state.V[:0]))
        asked = {node: content(told, round=state.round) for node in sorted(self.sizes)}
        return Scores.joined(
            [Scores(), *(Scores(**facts_of(reply)) for reply in self._ask("evaluate", asked).values())]
        )

    def _clear(self, state: ServerState) -> Sums:
        told = broadcast_arrays(broadcast(state, self.catalogue.public, state.V[:0]))
        asked = {node: content(told, stage="sums", round=state.round) for node in sorted(self.sizes)}
        replies = self._ask("train", asked)
        if len(replies) < self.least:
            raise TooFew(f"{len(replies)} silos answered")
        return added([sums_of(arrays_of(replies[node])) for node in sorted(replies)])

    def _secure(self, state: ServerState) -> Sums:
        """The stages of a secure sum, one message each: see ``fedrecplus.parts.channel.secure``."""
        settings = self.config.channel.settings
        layout = layout_of(state.V.shape, self.config.model.statistic_size, settings)
        nodes = dict(enumerate(sorted(self.sizes)))
        options = ServerOptions(least_cohort=self.least, corrupted=settings.corrupted, dropout=settings.dropout_bound)
        server = SecureServer(secrets.token_bytes(16), layout, list(nodes), options)
        told = broadcast_arrays(broadcast(state, self.catalogue.public, state.V[:0]))
        terms = {"round": state.round, "people": self.people, "silos": self.least, "session": server.session}
        asked = {number: content(told, stage="advertise", number=number, **terms) for number in nodes}
        for stage in STAGES:
            replies = self._ask("train", {nodes[number]: message for number, message in asked.items()})
            for number in asked:
                if nodes[number] in replies:
                    _take(server, number, bytes(facts_of(replies[nodes[number]])["message"]))
            following = server.close()
            after = STAGES[(STAGES.index(stage) + 1) % len(STAGES)]
            asked = {number: content({}, stage=after, message=message) for number, message in following.items()}
        return decode(server.total, encoding_for(layout, self.catalogue.public, self.people, settings))

    def _ask(self, kind: str, asked: Mapping[int, Any]) -> dict[int, Any]:
        """What silos answered in time; one that says why it can't is logged, and asked to join again."""
        messages = [Message(record, dst_node_id=node, message_type=kind) for node, record in asked.items()]
        replies = {}
        for reply in self.grid.send_and_receive(messages, timeout=self.timeout) if messages else ():
            node = reply.metadata.src_node_id
            problem = reply.error.reason if reply.has_error() else facts_of(reply.content).get("error")
            if problem is None:
                replies[node] = reply.content
            else:
                log.warning("silo %d: %s", node, problem)
        for node in asked.keys() - replies.keys():
            self.sizes.pop(node, None)
        return replies


class TooFew(Exception):
    """Fewer silos, or people, than a round needs."""


def config_of(settings: Mapping[str, Any]) -> Config:
    """The preset or file, with the run's further settings; refused where silos can't run it."""
    name = str(settings["algorithm"])
    config = preset(name) if name in presets() or not Path(name).exists() else load_config(name, ())
    config = assign(config, str(settings["settings"]).split())
    if int(settings["rounds"]):
        config = change(config, "server.rounds", int(settings["rounds"]))
    if config.server.held_back:
        config = change(config, "server.held_back", 0.0)
    check_silos(config)
    return check(config)


def check_silos(config: Config) -> None:
    """Refuse what is more than a sum over silos."""
    rule, channel, privacy = config.aggregation, config.channel, config.privacy.rule
    problem = ""
    if isinstance(rule, RobustAggregation) or rule.against_mean:
        problem = f"aggregation.rule={rule.rule} compares single uploads of everybody"
    elif channel.rule not in ("clear", "sums", "secure"):
        problem = f"channel.rule={channel.rule} is a protocol between single people"
    elif channel.rule == "secure" and (channel.shows_rows or channel.settings.groups > 1):
        problem = "channel.rows and channel.groups are about single people's uploads"
    elif privacy not in ("none", "central"):
        problem = f"privacy.rule={privacy} is noise of single devices"
    elif config.simulation_only or config.seeded_noise or config.cohort.dropout > 0 or config.privacy.amplifies:
        problem = "simulation_only, seeded_noise, cohort.dropout and privacy.amplification are for simulation"
    elif config.model.turn(config, 0) is not None:
        problem = f"model.rule={config.model.rule} has tables that take turns, in simulation alone"
    if problem:
        raise UserError(f"{problem}, and a silo sends one sum", "choose fedrec+secure or fedmf, or change that setting")


def check_figures(config: Config, catalogue: ItemCatalogue) -> None:
    """Refuse a budget beside exact figures of the participants, which are no part of it."""
    if config.privacy.rule != "none" and catalogue.tells_participants:
        raise UserError(
            f"privacy.rule={config.privacy.rule} with {catalogue.figures}, which are no part of any budget",
            "write the items with `fedrecplus deploy items` from public ratings",
        )


def _catalogue(settings: Mapping[str, Any]) -> ItemCatalogue:
    """The items: of the data set that is dealt out, or from the file that the server was given."""
    if settings["dataset"]:
        return ItemCatalogue.of(fr.folds(load(str(settings["dataset"])))[int(settings["fold"])][0])
    if not settings["items"]:
        raise UserError(
            "the items that silos agree on are not named",
            'write them with `fedrecplus deploy items`, and give items="/path/to/items.safetensors", or a dataset',
        )
    return ItemCatalogue.read(Path(str(settings["items"])).expanduser())


def _take(server: SecureServer, number: int, answer: bytes) -> None:
    try:
        server.take(number, answer)
    except Refused as reason:
        log.warning("silo %d: %s", number, reason)


def _result(config: Config, errors: Scores, seconds: float) -> dict[str, Any]:
    """What ``result.json`` of a training holds, as far as it is known without anybody's ratings."""
    unknown = dict.fromkeys(("mae", "rmse", "nmse", "train_ratings", "groups", "ranking", "fit"))
    figures = errors.figures() if errors.ratings else {}
    return {
        **unknown,
        **{name: figures[name] for name in ("mae", "rmse", "nmse") if figures},
        **{"test_ratings": errors.ratings, "dataset": "silos", "item_list": PUBLIC_LIST},
        **{"algorithm": config.algorithm, "seed": config.seed, "rounds": config.server.rounds, "seconds": seconds},
        **channel_of(config),
        "made": Stopwatch().made(config.seed),
        "config": to_tables(config),
    }
