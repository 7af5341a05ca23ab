"""The server's rounds: ask, gather, aggregate, checkpoint; from the last checkpoint on, to the run folder's end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, load_config, on_scale
from fedrecplus.deploy.catalogue import ITEMS, ItemCatalogue
from fedrecplus.deploy.checks import Expected
from fedrecplus.deploy.collecting import Collected, Link, collect
from fedrecplus.deploy.journal import LOG, Journal
from fedrecplus.deploy.locking import alone_in
from fedrecplus.deploy.outcome import finish
from fedrecplus.deploy.packet import Packet
from fedrecplus.deploy.settings import Deployment, check_deployable
from fedrecplus.deploy.standing import Standing
from fedrecplus.deploy.starting import LAST, bare_state, first_state
from fedrecplus.deploy.wire import request_packet
from fedrecplus.errors import UserError
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import ServerState, server_round
from fedrecplus.simulation import RoundReport
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.run_folder import CONFIG, RunFolder
from fedrecplus.training.tally import Tally


@dataclass
class Service:
    """One run while it is served."""

    link: Link
    folder: RunFolder
    config: Config
    deployment: Deployment
    catalogue: ItemCatalogue
    mean: float
    journal: Journal
    standing: Standing
    tally: Tally = field(default_factory=Tally)
    informed: set[int] = field(default_factory=set)
    """nodes that have the catalogue"""
    overdue: dict[str, int] = field(default_factory=dict)
    """messages of closed rounds whose answers may still come"""


def serve(link: Link, path: Path) -> None:
    """All rounds that are left. What stops it is said in ``progress.json`` too, where the follower looks."""
    journal = Journal(path)
    try:
        with alone_in(path), logging_to(path):
            if not RunFolder(path).finished:
                journal.stand(phase="starting")
                _serve(_prepare(link, path, journal))
    except UserError as error:
        journal.stand(phase="failed", error=str(error))
        raise


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Write what is refused or fails, and why, into the run folder: Flower keeps an app's output in its database."""
    handler = logging.FileHandler(path / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.getLogger("fedrecplus").addHandler(handler)
    try:
        yield
    except Exception:
        logging.getLogger("fedrecplus").exception("the run stopped here")
        raise
    finally:
        logging.getLogger("fedrecplus").removeHandler(handler)
        handler.close()


def _serve(service: Service) -> None:
    state = _first_or_saved(service)
    while state.round < service.config.server.rounds:
        state = _round(service, state)
    # a later run that goes on with this model needs the server's momentum and last step, too
    Checkpoint(bare_state(state), Tally(), 0).write(service.folder.path / LAST)
    finish(service.folder, service.config, service.catalogue, state.V, service.mean, service.tally, service.journal)
    service.journal.stand(phase="finished", round=state.round)


def _prepare(link: Link, path: Path, journal: Journal) -> Service:
    config = check_deployable(load_config(path / CONFIG))
    deployment, catalogue = Deployment.read(path), ItemCatalogue.read(path / ITEMS)
    config = on_scale(config, catalogue.scale)
    mean = catalogue.mean if config.model.global_mean else 0.0
    standing = Standing(deployment.strikes)
    return Service(link, RunFolder(path), config, deployment, catalogue, mean, journal, standing)


def _first_or_saved(service: Service) -> ServerState:
    saved = service.folder.checkpoint()
    state = saved.state.server if saved else first_state(service.config, service.catalogue.public, service.mean)
    service.folder.rewrite_metrics(service.folder.metrics(up_to=state.round) if saved else [])
    lines = service.journal.keep_up_to(state.round)
    if saved:
        service.tally = saved.tally
    if lines:
        service.standing.restore(lines)
    return state


def _round(service: Service, state: ServerState) -> ServerState:
    """One round; repeated while nobody answers, until patience is at its end."""
    began = time.monotonic()
    while True:
        nodes = _nodes(service, state, began)
        started = time.monotonic()
        gathered = _gather(service, state, nodes)
        if gathered.uploads:
            break
        if time.monotonic() - began > service.deployment.patience:
            raise UserError(f"no upload came in {service.deployment.patience:g} s", "check the nodes' logs")
        time.sleep(0.2)
    after = server_round(state, gathered.uploads, service.config)
    if not np.isfinite(after.V).all():
        raise UserError(f"V is not finite after round {after.round}", "start again with a lower client.learning_rate")
    _keep(service, after, gathered, time.monotonic() - started)
    return after


def _nodes(service: Service, state: ServerState, began: float) -> list[int]:
    """Nodes to ask: those connected and in good standing, a keyed sample where the settings want one."""
    while True:
        everybody = service.link.nodes()
        connected = [node for node in everybody if node not in service.standing.set_aside]
        if len(everybody) >= service.deployment.nodes:  # those who are set aside have come, too
            break
        # those who are there are enough when the others have had a deadline to come back
        if connected and state.round > 0 and time.monotonic() - began > service.deployment.deadline:
            break
        if time.monotonic() - began > service.deployment.patience:
            raise UserError(
                f"{len(connected)} of {service.deployment.nodes} nodes came in {service.deployment.patience:g} s",
                "start more nodes, or ask for fewer with --nodes",
            )
        service.journal.stand(phase="waiting", round=state.round, nodes=len(connected), wanted=service.deployment.nodes)
        time.sleep(0.3)
    if not connected:
        raise UserError(
            "every node is set aside", f"read the refusals in the run folder's {LOG}, then use --resume --pardon"
        )
    fraction = service.config.client.fraction
    if fraction < 1.0:
        draws = uniform(subkey(service.config.seed, "nodes", state.round), np.array(connected, dtype=np.uint64))
        connected = [connected[place] for place in np.argsort(draws)[: max(1, round(fraction * len(connected)))]]
    return connected


def _gather(service: Service, state: ServerState, nodes: list[int]) -> Collected:
    def packet(attach: bool) -> Packet:
        return request_packet(
            service.deployment.model, state, service.config, service.mean, service.catalogue, attach=attach
        )

    short, long = packet(False), packet(True)
    service.informed -= service.standing.without_catalogue
    service.standing.without_catalogue.clear()
    packets = {node: short if node in service.informed else long for node in nodes}
    expected = Expected(state.round, state.V.shape, service.config, service.deployment)

    def tell(gathered: Collected) -> None:
        service.journal.stand(
            phase="round", round=state.round, asked=len(nodes), answered=len(gathered.answered), lost=len(gathered.lost)
        )

    gathered = collect(service.link, packets, expected, service.standing, service.overdue, tell)
    service.informed |= gathered.answered.keys()
    down = sum(packet.size for packet in packets.values())
    service.tally = service.tally.after(RoundReport(len(gathered.uploads), gathered.bytes_up, down), 0.0)
    return gathered


def _keep(service: Service, state: ServerState, gathered: Collected, seconds: float) -> None:
    """Metrics, journal, then the checkpoint: what comes after it is dropped when a run goes on from it."""
    service.tally = service.tally.after(RoundReport(0, 0, 0), seconds)
    rmse = float(np.sqrt(gathered.squared / gathered.rated)) if gathered.rated else None
    line: dict[str, Any] = {"round": state.round, "measured_on": "train", "rmse": rmse}
    dropouts = len(gathered.asked) - len(gathered.answered)
    service.folder.add_metrics(
        {**line, "uploads": len(gathered.uploads), "dropouts": dropouts, **service.tally.figures()}
    )
    service.journal.add(
        {
            **line,
            "seconds": seconds,
            "nodes": {str(node): round(took, 3) for node, took in gathered.answered.items()},
            "lost": {str(node): why for node, why in gathered.lost.items()},
            "silent": [str(gathered.asked[message]) for message in gathered.waiting],
            "clients": [upload.client for upload in gathered.uploads],
            "bound": {str(node): clients for node, clients in gathered.bound.items() if clients},
            "bytes_up": gathered.bytes_up,
            "standing": service.standing.to_dict(),
        }
    )
    service.folder.save_checkpoint(Checkpoint(bare_state(state), service.tally, 0))
