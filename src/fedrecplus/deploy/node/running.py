"""A node from its home folder to its end: one at a time, stopped by a signal, for good or for one look."""

from __future__ import annotations

import _thread
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from fedrecplus.deploy.node.connection import ServerConnection, is_loopback, split_address, trust
from fedrecplus.deploy.node.home import LOCK, STORE
from fedrecplus.deploy.node.keys import NODE_KEY, read_node_key
from fedrecplus.deploy.node.metrics import NodeMetrics
from fedrecplus.deploy.node.node import Node
from fedrecplus.deploy.node.pace import Pace
from fedrecplus.errors import UserError
from fedrecplus.files import check_private, locked

_SIGNALS = ("SIGINT", "SIGTERM", "SIGBREAK")
"""what tells a node to stop; the last one is of Windows alone"""
_GRACE = 10.0
"""seconds that an answer may take that is being made when the node is told to stop"""


def prepare(
    home: Path, address: str, ca: Path | None, *, insecure: bool, longest_pause: float = 30.0,
    share_error: bool = False, metrics: NodeMetrics | None = None, longest_wait: float = 50.0, answer_step: float = 0.0,
) -> Node:  # fmt: skip
    """The node of a home folder, ready to connect."""
    host, port = split_address(address)
    if insecure and not is_loopback(host):
        raise UserError(f"--insecure to {host} would send uploads in the clear", "give the server's --ca instead")
    if not (home / STORE).exists():
        raise UserError(f"{home / STORE}: no store of ratings here", "make one with `fedrecplus device init`")
    check_private(home / STORE)
    server = ServerConnection(host, port, None if insecure else trust(ca), read_node_key(home / NODE_KEY))
    pace = Pace(min(0.2, longest_pause), longest_pause)
    options: dict[str, Any] = {"share_error": share_error, "answer_step": answer_step, "metrics": metrics}
    return Node(server, home / STORE, pace=pace, wait=longest_wait, **options)


def join(home: Path, node: Node, *, wait: float | None = None, back_in: float | None = None) -> None:
    """Run the node of a home until it is told to stop; with ``wait``, for one visit. A second one is refused."""
    remedy = "stop that node first, or give this one another --home"
    with locked(home / LOCK, f"the node in {home}", remedy), _told_to_stop(node):
        if wait is None:
            run_node(node)
        else:
            run_once(node, wait, back_in)


def run_node(node: Node) -> None:
    """Take steps until the end."""
    try:
        while True:
            pause = node.step()
            if node.stopping:
                raise KeyboardInterrupt
            time.sleep(pause)
    finally:
        node.leave()


def run_once(node: Node, wait: float, back_in: float | None = None) -> None:
    """Connect, take part if asked within ``wait`` seconds, and leave.

    After an answer it stays as long again: a secure sum has several stages. With ``back_in`` messages that come until
    then wait for the next visit.
    """
    end, answered = time.monotonic() + wait, 0
    node.pace.longest, node.wait = min(node.pace.longest, wait), min(node.wait, wait)
    try:
        while True:
            pause = node.step()
            if node.answered > answered:
                end, answered = time.monotonic() + wait, node.answered
            if node.stopping or (time.monotonic() + pause > end and not node.at_work):
                return
            time.sleep(pause)
    finally:
        node.leave(back_in or 0.0)


def end_with_parent(patience: float = 0.0) -> None:
    """End when the process that started this one is gone: it holds the other end of our standard input, a pipe.

    With ``patience`` this process is told first, as by a service manager. Whoever was started otherwise goes on.
    """
    with suppress(OSError):  # there may be no standard input
        if stat.S_ISFIFO(os.fstat(0).st_mode):
            threading.Thread(target=_wait_for_end, args=(patience,), daemon=True).start()


def _wait_for_end(patience: float) -> None:
    os.read(0, 1)  # nothing ever comes
    if patience > 0.0:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(patience)
    os._exit(1)  # nothing is lost by a kill


@contextmanager
def _told_to_stop(node: Node) -> Iterator[None]:
    """A service manager's signal ends the node as Ctrl-C does; an answer that is being made may take a while."""
    told = False
    last_call = threading.Timer(_GRACE, _interrupt)
    last_call.daemon = True

    def stop(_: int, __: FrameType | None) -> None:
        nonlocal told
        if told or not node.at_work:
            raise KeyboardInterrupt
        told = True
        node.stopping = True
        last_call.start()

    signals = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {name: signal.signal(name, stop) for name in signals}
    try:
        yield
    finally:
        last_call.cancel()
        for name, handler in before.items():
            signal.signal(name, handler)


def _interrupt() -> None:
    """Do to the main thread what Ctrl-C does, also while it waits for the network; Windows can't do the latter."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
