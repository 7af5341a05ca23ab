"""The server's rounds: ask, collect, aggregate, checkpoint; from the last checkpoint on, to the run folder's end."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import load_config
from fedrecplus.deploy.server.collect import Collected, Link, NodeRecords, collect
from fedrecplus.deploy.server.deployment import LOG, Deployment, Journal, checkpoint_of, only_server_of, write_result
from fedrecplus.deploy.wire import ITEMS, ItemCatalogue, RoundTerms, check_deployable, encode_request
from fedrecplus.engines import Diverged, RoundReport
from fedrecplus.engines.loop import look_for_divergence
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import os_words
from fedrecplus.protocol import Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import ServerState, broadcast, server_round, start_server, sums_of
from fedrecplus.training.divergence import step_size
from fedrecplus.training.privacy import Ledger
from fedrecplus.training.run_folder import CONFIG, RunFolder
from fedrecplus.training.tally import Tally


def serve(link: Link, path: Path) -> None:
    """All rounds that are left. What stops it is said in ``progress.json`` too, where the follower looks."""
    journal = Journal(path)
    try:
        with only_server_of(path), _logging_to(path / LOG):
            if not RunFolder(path).finished:
                journal.set_progress(phase="starting")
                _ServedRun(link, path).finish()
    except UserError as error:
        journal.set_progress(phase="failed", error=str(error))
        raise


@contextlib.contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Write what is refused or fails, and why, into the run folder: Flower keeps an app's output in its database."""
    log, handler = logging.getLogger("fedrecplus"), logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    try:
        yield
    except Exception:
        log.exception("the run stopped here")
        raise
    finally:
        log.removeHandler(handler)
        handler.close()


class _ServedRun:
    """One run while it is served."""

    def __init__(self, link: Link, path: Path) -> None:
        self.link, self.folder, self.journal = link, RunFolder(path), Journal(path)
        self.config, self.catalogue = check_deployable(load_config(path / CONFIG)), ItemCatalogue.read(path / ITEMS)
        self.deployment = Deployment.read(path)
        self.records, self.tally = NodeRecords(self.deployment.strikes), Tally()
        self.informed: set[int] = set()
        """nodes that have the catalogue"""
        self.overdue: dict[str, int] = {}
        """messages of closed rounds whose replies may still come"""

    def finish(self) -> None:
        """Run all rounds that are left, from the checkpoint on, and write model and result."""
        saved = self.folder.checkpoint()
        state = saved.state.server if saved else start_server(self.config, self.catalogue.public)
        self.folder.rewrite_metrics(self.folder.metrics(up_to=state.round) if saved else [])
        self.records.restore(self.journal.keep_up_to(state.round))
        self.tally = saved.tally if saved else Tally()
        while state.round < self.config.server.rounds:
            state = self._round(state)
        write_result(self.folder, self.config, self.catalogue, state, self.tally)
        self.journal.set_progress(phase="finished", round=state.round)

    def _round(self, state: ServerState) -> ServerState:
        """One round; repeated while nobody answers, until patience is at its end."""
        began, patience = time.monotonic(), self.deployment.patience
        while True:
            nodes = self._cohort(state, began)
            started = time.monotonic()
            collected = self._collect(state, nodes)
            if collected.uploads:
                break
            if time.monotonic() - began > patience:
                raise UserError(f"no upload came in {patience:g} s", "check the nodes' logs")
            time.sleep(0.2)
        after = self._aggregate(state, collected.uploads)
        self._save(after, collected, time.monotonic() - started)
        return after

    def _aggregate(self, state: ServerState, uploads: list[Upload]) -> ServerState:
        public, config = self.catalogue.public, self.config
        sums = sums_of(uploads, broadcast(state, public, np.zeros((0, 0))), config)  # no weight looks at encoded items
        if (ledger := Ledger.of(self.folder.path, config, self.deployment.model)) is not None:
            ledger.before_round(state.round, fresh=True)  # a round that is repeated after a crash draws other noise
        after = server_round(state, sums, public, config, os_words)
        try:
            look_for_divergence(checkpoint_of(after, self.tally).state)
        except Diverged as diverged:
            raise UserError(f"the training {diverged}", f"start again with a lower {step_size(config)[0]}") from None
        return after

    def _cohort(self, state: ServerState, began: float) -> list[int]:
        """Nodes to ask: those connected and not set aside, a keyed sample where the settings want one."""
        wanted, patience = self.deployment.nodes, self.deployment.patience
        while True:
            everybody = self.link.nodes()
            connected = [node for node in everybody if node not in self.records.set_aside]
            if len(everybody) >= wanted:  # those who are set aside have come, too
                break
            # those who are there are enough when the others have had a deadline to come back
            if connected and state.round > 0 and time.monotonic() - began > self.deployment.deadline:
                break
            if time.monotonic() - began > patience:
                problem = f"{len(connected)} of {wanted} nodes came in {patience:g} s"
                raise UserError(problem, "start more nodes, or ask for fewer with --nodes")
            self.journal.set_progress(phase="waiting", round=state.round, nodes=len(connected), wanted=wanted)
            time.sleep(0.3)
        if not connected:
            remedy = f"read the refusals in the run folder's {LOG}, then use --resume --pardon"
            raise UserError("every node is set aside", remedy)
        fraction = self.config.cohort.fraction
        if fraction < 1.0:
            draws = uniform(subkey(self.config.seed, "nodes", state.round), np.array(connected, dtype=np.uint64))
            connected = [connected[place] for place in np.argsort(draws)[: max(1, round(fraction * len(connected)))]]
        return connected

    def _collect(self, state: ServerState, nodes: list[int]) -> Collected:
        ours, config = self.deployment, self.config
        self.informed -= self.records.without_catalogue
        self.records.without_catalogue.clear()
        short, long = (encode_request(ours.model, state, config, self.catalogue, attach=more) for more in (False, True))
        packets = {node: short if node in self.informed else long for node in nodes}
        limits = (ours.clients_per_node, ours.largest_change)
        terms = RoundTerms(ours.model, state.round, state.V.shape, config, *limits)
        collected = collect(self.link, packets, terms, ours, self.records, self.overdue, self.journal)
        self.informed |= collected.answered.keys()
        down = sum(packet.size for packet in packets.values())
        self.tally = self.tally.after(RoundReport(len(collected.uploads), collected.bytes_up, down), 0.0)
        return collected

    def _save(self, state: ServerState, collected: Collected, seconds: float) -> None:
        """Metrics, journal, then the checkpoint: what comes after it is dropped when a run goes on from it."""
        self.tally = self.tally.after(RoundReport(0, 0, 0), seconds)
        rmse = float(np.sqrt(collected.squared_error / collected.rated)) if collected.rated else None
        line: dict[str, Any] = {"round": state.round, "measured_on": "train", "rmse": rmse}
        counts = {"uploads": len(collected.uploads), "dropouts": len(collected.asked) - len(collected.answered)}
        self.folder.add_metrics({**line, **counts, **self.tally.figures()})
        line |= {"seconds": seconds, "bytes_up": collected.bytes_up, "refusals": self.records.to_dict()}
        line["nodes"] = {str(node): round(took, 3) for node, took in collected.answered.items()}
        line["lost"] = {str(node): why for node, why in collected.lost.items()}
        line["silent"] = [str(collected.asked[message]) for message in collected.waiting]
        line["clients"] = [upload.client for upload in collected.uploads]
        line["bound"] = {str(node): clients for node, clients in collected.bound.items() if clients}
        self.journal.add(line)
        self.folder.save_checkpoint(checkpoint_of(state, self.tally))
