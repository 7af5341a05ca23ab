"""Flower's grid with a pull that waits for nobody.

Flower announces a reply before its contents are there, and its pull then waits for them: three minutes where the node
was killed in between or means harm, with everybody else's replies behind it, and whatever the deadline is. Here each
reply's contents are fetched by a thread of its own, and a look returns what is complete.
"""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections.abc import Iterable
from typing import Any

from fedrecplus.deploy.flower import private

_PATIENCE = 1.0
"""seconds that a look waits for contents: most come at once"""


class UnblockedGrid:
    """Stands for Flower's ``HttpGrid`` where messages are sent and fetched."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self._came: queue.SimpleQueue[tuple[str, list[Any] | BaseException]] = queue.SimpleQueue()
        self._being_fetched: set[str] = set()

    def get_node_ids(self) -> Iterable[int]:
        """Nodes that are connected."""
        return list(self._grid.get_node_ids())

    def push_messages(self, messages: Iterable[Any]) -> Iterable[str]:
        """Send."""
        return list(self._grid.push_messages(messages))

    def pull_messages(self, message_ids: Iterable[str]) -> list[Any]:
        """Replies that are here completely."""
        threads = self._fetch_new([name for name in message_ids if name not in self._being_fetched])
        end = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        came: list[Any] = []
        while not self._came.empty():
            name, messages = self._came.get()
            self._being_fetched.discard(name)
            if isinstance(messages, BaseException):
                raise messages
            came += messages
        return came

    def _fetch_new(self, names: list[str]) -> list[threading.Thread]:
        """Start fetching what has been announced. Flower announces once, so what is being fetched isn't asked for."""
        if not names:
            return []
        request = private.get("flwr.proto.runtime_pb2.PullAppMessagesRequest")
        announced = self._grid._runtime_client.PullMessages(request(message_ids=names))
        threads = []
        for message, tree in zip(announced.messages_list, announced.message_object_trees, strict=True):
            self._being_fetched.add(message.metadata.reply_to_message_id)
            threads.append(threading.Thread(target=self._fetch, args=(message, tree), daemon=True))
            threads[-1].start()
        return threads

    def _fetch(self, message: Any, tree: Any) -> None:
        grid, name = copy.copy(self._grid), message.metadata.reply_to_message_id
        grid._client = _Announced(self._grid._client, message, tree)
        try:
            self._came.put((name, list(grid.pull_messages([name]))))
        except BaseException as failure:
            self._came.put((name, failure))


class _Announced:
    """Stands for Flower's client towards the SuperLink; the only reply announced is one that we know of."""

    def __init__(self, client: Any, message: Any, tree: Any) -> None:
        self._client, self._message, self._tree = client, message, tree

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def PullMessages(self, _: Any) -> Any:
        """What was announced."""
        response = private.get("flwr.proto.runtime_pb2.PullAppMessagesResponse")
        return response(messages_list=[self._message], message_object_trees=[self._tree])
