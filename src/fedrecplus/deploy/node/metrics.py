"""A node's figures for Prometheus, in a file that node_exporter's textfile collector reads: a node has no port.

Counters are kept in the device's store, so that `node once` goes on counting. The file has figures of this node alone:
no rating, no item, no model's name. It stays on the device; who scrapes it is the owner's choice.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedrecplus.deploy.device import Store
from fedrecplus.deploy.node.connection import ConnectionFigures, ServerConnection
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")
_FACT = "node.metrics"
_EVERY = 60.0
"""seconds between two writings while nothing happens"""
_SUFFIX = ".prom"
_DAY = 86_400.0


@dataclass
class Counts:
    """What a node has counted since its store was made."""

    rounds: int = 0
    messages: int = 0
    seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    last_round: str = ""
    """model and round that were counted last: a secure sum has several messages, and a killed node is asked again"""

    @classmethod
    def load(cls, path: Path) -> Counts:
        """Those of a store."""
        with Store.open(path) as store:
            kept = json.loads(store.fact(_FACT) or "{}")
        return cls(**{**kept, "refusals": Counter(kept.get("refusals", {}))})

    def save(self, path: Path) -> None:
        """Keep them."""
        with Store.open(path) as store, store.changing():
            store.put("facts", [(_FACT, json.dumps(vars(self)))])


class NodeMetrics:
    """The figures of one node, and the file they are written to."""

    def __init__(self, file: Path, store: Path) -> None:
        if file.suffix != _SUFFIX:
            raise UserError(f"--metrics {file}: node_exporter reads files that end in {_SUFFIX}", f"name it x{_SUFFIX}")
        self._file, self._store, self._counts = file, store, Counts.load(store)
        self._last_seconds, self._due, self._taken = 0.0, 0.0, ConnectionFigures()

    def measured(self, reply_to: Callable[[Packet], Packet]) -> Callable[[Packet], Packet]:
        """The function that answers a request, counted."""

        def answer(request: Packet) -> Packet:
            began = time.perf_counter()
            reply = reply_to(request)
            self._count(request, reply, time.perf_counter() - began)
            return reply

        return answer

    def _count(self, request: Packet, reply: Packet, seconds: float) -> None:
        counts, refusal = self._counts, reply.facts.get("refusal")
        counts.messages, counts.seconds, self._last_seconds = counts.messages + 1, counts.seconds + seconds, seconds
        if refusal is not None:
            counts.refusals[str(refusal)] += 1
        elif (name := f"{request.facts.get('model')} {request.facts.get('round')}") != counts.last_round:
            counts.rounds, counts.last_round = counts.rounds + 1, name
        self._due = 0.0

    def note(self, server: ServerConnection, *, at_end: bool = False) -> None:
        """After a step: write the file where something happened, or a minute has passed.

        A place that can't be written is said in the log, and the node goes on.
        """
        if time.monotonic() < self._due and not at_end:
            return
        answered, self._due = self._due == 0.0, time.monotonic() + _EVERY
        traffic, before = server.traffic, self._taken
        self._counts.bytes_up += traffic.up - before.up
        self._counts.bytes_down += traffic.down - before.down
        self._taken = ConnectionFigures(traffic.up, traffic.down)
        try:
            if answered or at_end:
                self._counts.save(self._store)
            self._write("".join(self._lines(traffic)))
        except (UserError, OSError) as error:
            log.error("the node's metrics: %s", error)

    def _write(self, text: str) -> None:
        """Whole or not at all; readable by others, since node_exporter is another user. Not forced onto the disk."""
        temporary = self._file.with_name(f".{self._file.name}.{os.getpid()}.part")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("x", encoding="utf-8") as file:  # new: one that another user put there may lead away
                file.write(text)
            temporary.chmod(0o644)
            temporary.replace(self._file)
        finally:
            temporary.unlink(missing_ok=True)

    def _lines(self, traffic: ConnectionFigures) -> Iterator[str]:
        counts = self._counts
        yield from self._family("rounds_total", "counter", "Rounds that this node took part in.", counts.rounds)
        yield from self._family("answers_total", "counter", "Messages answered, refusals too.", counts.messages)
        yield from self._family("answer_seconds_total", "counter", "Seconds of making answers.", counts.seconds)
        yield from self._family("last_answer_seconds", "gauge", "Seconds of making the last one.", self._last_seconds)
        yield from self._family("sent_bytes_total", "counter", "Bytes of requests to the server.", counts.bytes_up)
        yield from self._family("received_bytes_total", "counter", "Bytes of its answers.", counts.bytes_down)
        yield from self._family("store_bytes", "gauge", "Size of the store of ratings.", _size(self._store))
        if traffic.last:
            text = "When the server answered last."
            yield from self._family("last_contact_timestamp_seconds", "gauge", text, traffic.last)
        name, text = "refusals_total", "Requests that this node refused."
        yield from self._labelled(name, "counter", text, "reason", counts.refusals)
        days = {which: (end - time.time()) / _DAY for which, end in traffic.certificates.items()}
        name, text = "certificate_days", "Days until a certificate expires."
        yield from self._labelled(name, "gauge", text, "certificate", days)

    def _family(self, name: str, kind: str, text: str, value: float) -> Iterator[str]:
        yield from _heading(name, kind, text)
        yield f"fedrecplus_node_{name}{{{self._home}}} {value:.15g}\n"

    def _labelled(self, name: str, kind: str, text: str, label: str, values: Mapping[str, float]) -> Iterator[str]:
        yield from _heading(name, kind, text)
        for reason, value in sorted(values.items()):
            yield f'fedrecplus_node_{name}{{{self._home},{label}="{reason}"}} {value:.15g}\n'

    @property
    def _home(self) -> str:
        """Which node: a machine may have several, each with a file of its own."""
        text = str(self._store.parent.absolute())
        for mark, written in (("\\", r"\\"), ('"', r"\""), ("\n", r"\n")):
            text = text.replace(mark, written)
        return f'home="{text}"'


def _heading(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP fedrecplus_node_{name} {text}\n# TYPE fedrecplus_node_{name} {kind}\n"


def _size(store: Path) -> int:
    paths = [store.with_name(store.name + suffix) for suffix in ("", "-wal", "-shm")]
    return sum(path.stat().st_size for path in paths if path.exists())
