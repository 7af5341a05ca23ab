"""What the newest run asks, for whoever thinks of joining: its settings, the catalogue, and the table as it is now.

It is a round's request that asks for nothing: no session, no answer. A page makes the first list of it, and looks by it
whether its owner would agree. Nothing in it is of one person.
"""

from __future__ import annotations

import threading

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.stored_run import StoredRun
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.task import Task
from fedrecplus.rounds import start_server

_BESIDE = ("last_step", "last_covariance")


class Offers:
    """The offer of this worker's database, made once for each round."""

    def __init__(self, database: Database) -> None:
        self._database, self._making = database, threading.Lock()
        self._made: tuple[tuple[int, int], bytes] | None = None

    def newest(self) -> bytes | None:
        """The newest run's offer; None where there was no run."""
        run = StoredRun.newest(self._database)
        if run is None:
            return None
        key = run.number, run.closed_rounds()
        with self._making:  # by one for all who ask after a round
            if self._made is None or self._made[0] != key:
                self._made = key, _offer(run).to_bytes()
            return self._made[1]


def _offer(run: StoredRun) -> Packet:
    config, catalogue, saved = run.config(), run.catalogue, run.checkpoint()
    state = saved.state.server if saved else start_server(config, catalogue.public)
    terms = run.deployment
    packet = encode_request(terms.model, state, config, catalogue, attach=True, task=Task.parse(terms.task))
    return Packet(packet.facts, {name: table for name, table in packet.arrays.items() if name not in _BESIDE})
