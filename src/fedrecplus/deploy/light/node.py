"""A device's node: it asks the server for work, answers in place, and goes on after whatever interrupted it.

It is one process that listens on no port, loads nothing that the answer doesn't need, and runs nothing that a server
sends. Two facts in the device's store let it go on after a kill: the number the server knows it by, and the message
that it is answering. With the number it is back at once, where a fresh activation would be refused until the server
believes that the killed node is gone. The message is fetched again, and its answer is the one that the store keeps.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fedrecplus.deploy.device import answer
from fedrecplus.deploy.light.facts import NodeFacts
from fedrecplus.deploy.light.fleet import Fleet, NoAnswer, Rejected
from fedrecplus.deploy.light.messages import Asked, Reply, packet_of_object
from fedrecplus.deploy.light.pace import Pace
from fedrecplus.deploy.light.protobuf import Malformed
from fedrecplus.deploy.wire import Packet, Refusal, encode_refusal
from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")

_NUMBER, _OPEN, _AWAY = "node.number", "node.open", "node.away"
_SHORTEST_BEAT, _LONGEST_BEAT = 30.0, 120.0
"""seconds between signs of life that are promised; the server believes a node gone after two of them"""
_EARLY = 0.8
_LEAST_WAIT = 1.0
"""seconds: below that pause, a node doesn't ask the server to hold its answer"""
_UNKNOWN = 401
_MOST_UNCONFIRMED = 20
Answer = Callable[[Packet], Packet]


class LightNode:
    """A node that takes steps; whoever runs it waits between them for as long as each step says."""

    def __init__(
        self, fleet: Fleet, store: Path, *, share_error: bool = False, registers: bool = False,
        pace: Pace | None = None, reply_to: Answer | None = None,
    ) -> None:  # fmt: skip
        """``registers`` where the server asks for no key that was admitted; ``reply_to`` answers a packet."""
        self.fleet, self.store, self.pace = fleet, store, pace or Pace()
        self._facts = NodeFacts(store)
        self.answered = 0
        self.stopping = False
        """set by whoever wants it to end: it does after the answer that it is making"""
        self._registers = registers
        self._reply_to = reply_to or (lambda packet: answer(packet, store, share_error=share_error))
        self._number: int | None = None
        self._beat_due = 0.0
        self._asked: Asked | None = None
        self._content: bytes | None = None
        """the packet that it is asked with, where it came with the message"""
        self._reply: Reply | None = None
        self._unconfirmed: list[tuple[int, str]] = []
        self._trouble = ""

    @property
    def at_work(self) -> bool:
        """Whether it is answering a message."""
        return self._asked is not None

    def step(self) -> float:
        """Do the next thing; returns seconds to wait before the one after it. What can't be mended is a UserError."""
        try:
            if self._number is None:
                self._connect()
            elif time.monotonic() >= self._beat_due:
                self._beat(self.fleet)
            if self._unconfirmed:
                self._confirm()
            pause = self._look() if self._asked is None else self._work()
            self._say_once("")
            return pause
        except NoAnswer as error:
            self._say_once(f"{self.fleet.host}:{self.fleet.port} doesn't answer ({error}); trying on")
        except (Rejected, Malformed) as error:
            self._rejected(error)
        if self._asked is not None and time.time() > self._asked.until:
            self._close("its answer came too late")
        return self.pace.after_failure()

    def leave(self) -> None:
        """Tell the server that this node is gone, so that nobody waits for it."""
        if self._number is not None:
            with contextlib.suppress(NoAnswer, Rejected, UserError):
                self.fleet.call("deactivate-node", {"node_id": self._number}, 5.0)
        self._number = None
        self.fleet.close()

    def away_for(self, seconds: float) -> None:
        """Leave, but let messages wait: the node will be back within so many seconds."""
        if self._number is not None:
            interval = min(max(seconds, _SHORTEST_BEAT), 1800.0)
            with contextlib.suppress(NoAnswer, Rejected, UserError):
                self._call("send-node-heartbeat", heartbeat_interval=interval)
                self._facts.remember(_AWAY, "1")
        self._number = None
        self.fleet.close()

    def _call(self, name: str, fleet: Fleet | None = None, **request: Any) -> dict[str, Any]:
        return (fleet or self.fleet).call(name, {"node": {"node_id": self._number}, **request})

    def _connect(self) -> None:
        """Be the node that the server knows already, or become one.

        Who was killed while it had no message, or before it could note one, activates anew: what was sent to it
        meanwhile may be lost, and the server asks again whom it sees activated in a round.
        """
        number, noted, away = (self._facts.recall(name) for name in (_NUMBER, _OPEN, _AWAY))
        known = json.loads(number or "null")
        goes_on = bool(noted or away or self._asked is not None)
        if away:
            self._facts.remember(_AWAY, "")
        who = [f"{self.fleet.host}:{self.fleet.port}", hashlib.sha256(self.fleet.key.public).hexdigest()]
        if goes_on and known is not None and known[:2] == who and self._is_known(int(known[2])):
            self._asked = Asked.of_text(noted) if noted and self._asked is None else self._asked
        else:
            if self._registers:
                with contextlib.suppress(Rejected):  # it is registered already
                    self.fleet.call("register-node", {"public_key": self.fleet.key.public})
            request = {"public_key": self.fleet.key.public, "heartbeat_interval": _SHORTEST_BEAT}
            self._number = self.fleet.call("activate-node", request)["node_id"]
            self._facts.remember(_NUMBER, json.dumps([*who, self._number]))
            self._asked = self._content = self._reply = None
        self._beat_due = time.monotonic() + _EARLY * _SHORTEST_BEAT
        log.info("connected to %s as node %d", who[0], self._number)

    def _is_known(self, number: int) -> bool:
        """Whether the server takes a sign of life from this number: no activation is needed then."""
        self._number = number
        try:
            if self._call("send-node-heartbeat", heartbeat_interval=_SHORTEST_BEAT)["success"]:
                return True
        except Rejected:
            pass
        except BaseException:
            self._number = None
            raise
        self._number = None
        return False

    def _beat(self, fleet: Fleet) -> None:
        """A sign of life. The next one is promised for a time in which this node looks a few times for work."""
        interval = min(max(4.0 * self.pace.idle, _SHORTEST_BEAT), _LONGEST_BEAT)
        if not self._call("send-node-heartbeat", fleet, heartbeat_interval=interval)["success"]:
            raise Rejected(_UNKNOWN, "the server doesn't know this node any more")
        self._beat_due = time.monotonic() + _EARLY * interval

    def _look(self) -> float:
        """Ask for work; what comes is done in the same step."""
        before = time.monotonic()
        wait = self.pace.longest
        wait = min(wait, max(self._beat_due - before, 0.0)) if wait > _LEAST_WAIT else 0.0
        came = self.fleet.call("pull-messages", {"node": {"node_id": self._number}}, wait=wait)
        latency = time.monotonic() - before
        messages, trees, hint = came["messages_list"], came["message_object_trees"], came["reconnect"]
        if not messages or not trees:
            seconds = float(hint["reconnect"]) if isinstance(hint, dict) else 0.0
            return self.pace.after_nothing(latency, wait, seconds)
        self._asked = Asked.of(messages[0], trees[0], time.time())
        attached = {one["object_id"]: one["content"] for one in came["attached"]}
        self._content = attached.get(self._asked.content)
        self._facts.remember(_OPEN, self._asked.to_text())
        return self._work()

    def _work(self) -> float:
        """Answer the open message: fetch, compute, send. Whatever is interrupted is gone on with by the next step."""
        asked = self._asked
        assert asked is not None
        run = asked.metadata["run_id"]
        if time.time() > asked.until:
            return self._close("its time was up")
        if self._reply is None:
            if self._content is None:
                found = self._call("pull-object", run_id=run, object_id=asked.content)
                if not found["object_found"]:
                    return self._close("the server has closed the round")
                if not found["object_available"]:
                    raise NoAnswer("the request isn't there yet")
                self._content = found["object_content"]
            with self._beating():
                self._reply = Reply.to(asked, self._reply_packet(self._content, asked.content))
        confirmed = self._send(run, self._reply)
        self.answered += 1
        if not confirmed:
            self._unconfirmed.append((run, asked.metadata["message_id"]))
        self._forget_asked()
        self._confirm()
        return self.pace.after_work()

    def _confirm(self) -> None:
        """Let the server delete messages that were answered; it only tidies up.

        It deletes what it has of a message, and fails if the rest comes after that: an app that asks two hundred nodes
        is still sending when the first one answers. A message's own object comes last.
        """
        left = []
        for run, name in self._unconfirmed[-_MOST_UNCONFIRMED:]:
            try:
                if self._call("pull-object", run_id=run, object_id=name)["object_available"]:
                    self._call("confirm-message-received", run_id=run, message_object_id=name)
                else:
                    left.append((run, name))
            except NoAnswer:
                left.append((run, name))
            except Rejected:  # the run is over
                continue
        self._unconfirmed = left

    def _reply_packet(self, content: bytes, name: str) -> Packet:
        try:
            return self._reply_to(packet_of_object(content, name))
        except Refusal as refusal:
            log.error("%s", refusal)
            return encode_refusal("request")
        except Exception:  # the server is told a word, never an error's text
            log.exception("the round failed here")
            return encode_refusal("fault")

    def _send(self, run: int, reply: Reply) -> bool:
        """The reply with all of its objects, then what the server lacks of them. Said twice, it is still one reply.

        Returns whether the server has deleted the question. Flower's own nodes tell how long an answer took, which
        grows with the number of rows; this one doesn't.
        """
        attached = [{"object_id": name, "content": content} for name, content in reply.objects.items()]
        announced: dict[str, Any] = {"messages_list": [reply.message], "message_object_trees": [reply.tree]}
        said = self._call("push-messages", **announced, attached=attached, confirms=True)
        for name, content in reply.objects.items():
            if name in said["objects_to_push"]:
                facts = {"run_id": run, "object_id": name, "object_content": content, "session_id": said["session_id"]}
                if not self._call("push-object", **facts)["stored"]:
                    raise NoAnswer("the server didn't keep the answer")
        return bool(said["confirmed"])

    def _rejected(self, error: Exception) -> None:
        """The server refuses: it has lost this node's number, doesn't know its key, or has closed the round."""
        if isinstance(error, Rejected) and error.status == _UNKNOWN and self._number is not None:
            self._say_once("the server doesn't know this node any more; connecting anew")
            self._number = None
        elif self._number is None:
            self._say_once(
                f"not let in ({error}): the operator must admit this node's key (`node key` shows it, `server admit` "
                "takes it), and this machine's clock must be right; trying on"
            )
        elif self._asked is not None:
            self._close(str(error))

    def _close(self, why: str) -> float:
        """Give the open message up."""
        log.warning("a round went on without this node: %s", why)
        self._forget_asked()
        return self.pace.after_work()

    def _forget_asked(self) -> None:
        self._asked = self._content = self._reply = None
        self._facts.remember(_OPEN, "")

    @contextlib.contextmanager
    def _beating(self) -> Iterator[None]:
        """Give signs of life while an answer is computed, over a connection of their own."""
        done = threading.Event()

        def beat() -> None:
            fleet = self.fleet.sibling()
            while not done.wait(max(0.0, self._beat_due - time.monotonic())):
                try:
                    self._beat(fleet)
                except (NoAnswer, Rejected, UserError):
                    self._beat_due = time.monotonic() + 2.0
            fleet.close()

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _say_once(self, trouble: str) -> None:
        if trouble.partition("(")[0] != self._trouble.partition("(")[0]:
            if trouble:
                log.warning("%s", trouble)
            else:
                log.info("back")
        self._trouble = trouble
