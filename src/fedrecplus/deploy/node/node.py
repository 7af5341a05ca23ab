"""A device's node: it asks the server for work, answers in place, and goes on after whatever interrupted it.

It is one process that listens on no port, loads nothing that the answer doesn't need, and runs nothing that a server
sends. It keeps nothing of its own between steps: a question that was not answered is handed out again, and its answer
is the one that the device's store keeps.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from fedrecplus.deploy.device import Store, answer, load_policy, stepped_tables
from fedrecplus.deploy.node.connection import CutOff, NoAnswer, Rejected, ServerConnection
from fedrecplus.deploy.node.metrics import NodeMetrics
from fedrecplus.deploy.node.pace import Pace
from fedrecplus.deploy.node.witness import ServerPast
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import CATALOGUE, SUMS, TABLES, WorkItem, object_digest
from fedrecplus.deploy.wire.reply import encode_refusal
from fedrecplus.deploy.wire.sealing import seal
from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")
_LONGEST_WAIT = 50.0
"""seconds that a poll is held: servers and proxies close a silent connection after sixty"""
_SHORTEST_WAIT, _LESS = 5.0, 0.7
"""seconds after which a proxy is taken to have cut a poll off, and the share of these that the next ones are held"""
_MORE = 20.0
"""seconds beyond that which an answer may take"""
_UNKNOWN = 401
Answer = Callable[[Packet], Packet]


class Node:
    """A node that takes steps; whoever runs it waits between them for as long as each step says."""

    def __init__(
        self, server: ServerConnection, store: Path, *, share_error: bool = False, pace: Pace | None = None,
        reply_to: Answer | None = None, wait: float = _LONGEST_WAIT, answer_step: float = 0.0,
        metrics: NodeMetrics | None = None,
    ) -> None:  # fmt: skip
        """``reply_to`` answers a packet; ``wait`` is how long a poll is held at most.

        Answers go at whole multiples of ``answer_step`` seconds after their questions: how long a device computes
        tells of how much it has. 0: at once.
        """
        self.server, self.store, self.pace, self.wait = server, store, pace or Pace(), min(wait, _LONGEST_WAIT)
        self.answered = 0
        self.stopping = False
        """set by whoever wants it to end: it does after the answer that it is making"""
        reply_to = reply_to or partial(answer, path=store, share_error=share_error, past=ServerPast(server))
        self._metrics, self._reply_to = metrics, reply_to if metrics is None else metrics.measured(reply_to)
        self._after = 0
        """the last question that was dealt with"""
        self._question: WorkItem | None = None
        self._sealed: bytes | None = None
        self._step, self._due = answer_step, 0.0
        """when the sealed answer is to go, by this machine's clock"""
        self._trouble = ""

    @property
    def at_work(self) -> bool:
        """Whether it is answering a question."""
        return self._question is not None

    @property
    def in_trouble(self) -> bool:
        """Whether its last step failed: the server was away, or didn't let it in."""
        return bool(self._trouble)

    def step(self) -> float:
        """Do the next thing; returns seconds to wait before the one after it. What can't be mended is a UserError."""
        pause = self._step_on()
        if self._metrics is not None:
            self._metrics.note(self.server)
        return pause

    def _step_on(self) -> float:
        try:
            pause = self._look() if self._question is None else self._work(self._question)
            self._say_once("")
            return pause
        except NoAnswer as error:
            self._say_once(f"{self.server.host}:{self.server.port} doesn't answer ({error}); trying on")
        except Rejected as error:
            self._rejected(error)
        except UserError:
            raise
        except (Refusal, msgspec.MsgspecError, ValueError) as error:
            self._say_once(f"{self.server.host}:{self.server.port} speaks another protocol ({error}); trying on")
            if self._question is not None:  # it would come to the same as often as it is looked at
                self._close()
        return self.pace.after_failure()

    def leave(self, away: float = 0.0) -> None:
        """Say that this node goes; with ``away``, that it is back within so many seconds, and messages wait for it."""
        self.server.close()  # it may be in the middle of a poll
        method, target = ("GET", f"/v1/work?wait=0&after={2**62}&away={away:.0f}") if away else ("DELETE", "/v1/work")
        with contextlib.suppress(NoAnswer, Rejected, UserError):
            self.server.call(method, target, seconds=5.0)
        self.server.close()
        if self._metrics is not None:
            self._metrics.note(self.server, at_end=True)

    def _look(self) -> float:
        """Ask for work; what comes is done in the same step."""
        before = time.monotonic()
        target = f"/v1/work?wait={self.wait:.1f}&after={self._after}"
        try:
            content = self.server.call("GET", target, seconds=self.wait + _MORE)
        except CutOff:
            if (waited := time.monotonic() - before) >= _SHORTEST_WAIT:
                self.wait = min(self.wait, _LESS * waited)
            raise
        if not content:
            return self.pace.after_nothing(time.monotonic() - before, self.wait)
        self._question, self._due = msgspec.msgpack.decode(content, type=WorkItem), time.monotonic()
        return self._work(self._question)

    def _work(self, question: WorkItem) -> float:
        """Answer the open question: fetch, compute, send. Whatever is interrupted is gone on with by the next step."""
        if self._sealed is None:
            packet = self._whole(question)
            content = self._reply_packet(packet).to_bytes()
            self._sealed = seal(content, question.seal, question.context)
            if self._step > 0.0:
                self._due += self._step * math.ceil((time.monotonic() - self._due) / self._step)
        if (early := self._due - time.monotonic()) > 0.0:
            return early
        self.server.call("POST", f"/v1/work/{question.id}", self._sealed)
        self.answered += 1
        self._close()
        return 0.0

    def _fetch(self, digest: str) -> bytes:
        return self.server.call("GET", f"/v1/objects/{digest}")

    def _whole(self, question: WorkItem) -> Packet:
        """The question with its objects, but for those that the store has or this node computes: the catalogue comes
        once, and who has the table before makes the step by itself, from the sum. Whoever looks at no task needs none.
        """
        asked, known, own = Packet.of_bytes(question.packet), {SUMS}, dict[str, NDArray[Any]]()
        if not question.objects:  # a later stage of a sum
            return asked
        try:
            with Store.open(self.store) as store:
                if store.value("SELECT 1 FROM catalogues WHERE digest = ?", str(asked.facts.get("catalogue"))):
                    known.add(CATALOGUE)
                if SUMS in question.objects and not load_policy(store).any_task:
                    sums = question.object(SUMS, self._fetch)
                    tables, own = stepped_tables(store, asked, sums), sums.arrays
                    if tables is not None and object_digest(tables.to_bytes()) == question.objects.get(TABLES):
                        own, known = {**own, **tables.arrays}, {*known, TABLES}
        except UserError as error:  # an answer says so in a word, the log in more
            log.error("%s", error)
        packet = question.whole(self._fetch, known)
        return Packet(packet.facts, {**packet.arrays, **own})

    def _reply_packet(self, packet: Packet) -> Packet:
        try:
            return self._reply_to(packet)
        except NoAnswer:
            raise
        except Exception:  # the server is told a word, never an error's text
            log.exception("the round failed here")
            return encode_refusal("fault")

    def _rejected(self, error: Rejected) -> None:
        """The server refuses: it doesn't know this node's key, or has closed the question."""
        if error.status == _UNKNOWN:
            self._say_once(
                f"not let in ({error}): the operator must admit this node's key (`node key` shows it, `server admit` "
                "takes it), and this machine's clock must be right; trying on"
            )
        elif self._question is not None:
            log.warning("a round went on without this node: %s", error)
            self._close()
        else:
            self._say_once(f"{self.server.host}:{self.server.port} refuses ({error}); trying on")

    def _close(self) -> None:
        assert self._question is not None
        self._after, self._question, self._sealed = self._question.id, None, None

    def _say_once(self, trouble: str) -> None:
        if trouble.partition("(")[0] != self._trouble.partition("(")[0]:
            if trouble:
                log.warning("%s", trouble)
            else:
                log.info("back")
        self._trouble = trouble
