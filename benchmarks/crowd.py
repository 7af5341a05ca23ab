"""Many nodes in one process, each with its own key, store and TLS connection; some vanish, some are killed.

A kill ends a node's object at a call to the server chosen by chance, without a word to the server, and starts it anew
from its store two seconds later. A dropout takes a message and is away for a while.
"""

from __future__ import annotations

import argparse
import heapq
import json
import logging
import os
import random
import resource
import signal
import ssl
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from fedrecplus.deploy.device import answer
from fedrecplus.deploy.node import (
    NODE_KEY,
    STORE,
    Node,
    Pace,
    ServerConnection,
    read_node_key,
    split_address,
    trust,
)
from fedrecplus.deploy.wire.packet import Packet

_BACK_AFTER_A_KILL = 2.0


class Gone(BaseException):
    """A node that is no more; ``for_seconds`` later it is started again."""

    def __init__(self, why: str, for_seconds: float) -> None:
        super().__init__(why)
        self.why, self.for_seconds = why, for_seconds


@dataclass
class Fate:
    """What becomes of nodes that are asked, and what was counted."""

    dropouts: float
    kills: float
    away: float
    count: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str, seconds: float = 0.0) -> None:
        """Count something that happened."""
        with self._lock:
            self.count[what] += 1
            self.seconds[what] += seconds


class CountedConnection(ServerConnection):
    """A connection whose calls are counted, and of which one may be the last that a node makes."""

    fate: Fate
    calls_left: int | None = None

    def call(self, method: str, target: str, body: bytes = b"", seconds: float = 60.0, longest: int = 1 << 26) -> bytes:
        """One call, unless the node dies before it."""
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise Gone("kill", _BACK_AFTER_A_KILL)
            self.calls_left -= 1
        before = time.monotonic()
        try:
            return super().call(method, target, body, seconds, longest)
        finally:
            self.fate.note(f"{method} {target.split('?')[0].split('/')[2]}", time.monotonic() - before)


class Crowd:
    """The nodes of some homes, stepped by as many threads: a server may hold its answer to a look for work."""

    def __init__(self, homes: list[Path], address: str, tls: ssl.SSLContext, fate: Fate, longest_pause: float) -> None:
        self.address, self.tls, self.fate, self.longest_pause = address, tls, fate, longest_pause
        self._due = [(time.monotonic() + random.uniform(0.0, 5.0), number) for number in range(len(homes))]
        heapq.heapify(self._due)
        self._homes, self._nodes = homes, dict[int, Node]()
        self._changed, self.over = threading.Condition(), False

    def work(self) -> None:
        """Take due steps until it is over."""
        while (number := self._next()) is not None:
            try:
                if number not in self._nodes:
                    self._nodes[number] = self._start(self._homes[number])
                pause = self._nodes[number].step()
            except Gone as gone:
                self.fate.note(gone.why)
                self._nodes.pop(number).server.close()
                pause = gone.for_seconds
            except Exception:
                logging.exception("a step failed")
                self.fate.note("fault")
                pause = 10.0
            with self._changed:
                heapq.heappush(self._due, (time.monotonic() + pause, number))
                self._changed.notify()

    def _next(self) -> int | None:
        with self._changed:
            while not self.over:
                wait = self._due[0][0] - time.monotonic() if self._due else 1.0
                if wait <= 0.0:
                    return heapq.heappop(self._due)[1]
                self._changed.wait(min(wait, 1.0))
        return None

    def _start(self, home: Path) -> Node:
        server = CountedConnection(*split_address(self.address), self.tls, read_node_key(home / NODE_KEY))
        server.fate = self.fate

        def reply_to(packet: Packet) -> Packet:
            if random.random() < self.fate.dropouts:
                raise Gone("dropout", self.fate.away)
            if random.random() < self.fate.kills:
                server.calls_left = random.randrange(3)
            before = time.monotonic()
            reply = answer(packet, home / STORE)
            self.fate.note("refused" if "refusal" in reply.facts else "answered", time.monotonic() - before)
            return reply

        return Node(server, home / STORE, pace=Pace(0.2, self.longest_pause), reply_to=reply_to)


def main() -> None:
    """Run the nodes of some homes until told to stop; then write what was counted."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.crowd")
    options.add_argument("address")
    options.add_argument("--ca", type=Path, required=True)
    options.add_argument("--homes", type=Path, required=True, help="a file with a line for each node's home")
    options.add_argument("--dropouts", type=float, default=0.0)
    options.add_argument("--kills", type=float, default=0.0, help="share of answers at which a node is killed")
    options.add_argument("--away", type=float, default=60.0)
    options.add_argument("--poll", type=float, default=30.0)
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    fate = Fate(given.dropouts, given.kills, given.away)
    homes = [Path(line) for line in given.homes.read_text().splitlines()]
    crowd = Crowd(homes, given.address, trust(given.ca), fate, given.poll)
    threading.stack_size(512 * 1024)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    threads = [threading.Thread(target=crowd.work, daemon=True) for _ in homes]
    for thread in threads:
        thread.start()
    parent = os.getppid()
    while not stopped and os.getppid() == parent:
        time.sleep(0.2)
    crowd.over = True
    used = resource.getrusage(resource.RUSAGE_SELF)
    facts = {
        "nodes": len(homes), "count": dict(fate.count), "seconds": {n: round(s, 3) for n, s in fate.seconds.items()},
        "cpu": used.ru_utime + used.ru_stime, "memory": _peak(),
    }  # fmt: skip
    given.out.write_text(json.dumps(facts))


def _peak() -> int:
    """Bytes at most resident; ``ru_maxrss`` would have the parent's, from before this program was loaded."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main()
