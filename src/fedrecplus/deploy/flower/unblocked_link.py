"""A link over Flower's grid whose pull waits for nobody.

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
from fedrecplus.deploy.flower.messages import FlowerLink

_PATIENCE = 1.0
"""seconds that a look waits for contents: most come at once"""


class UnblockedLink(FlowerLink):
    """A link over Flower's ``HttpGrid``."""

    def __init__(self, grid: Any) -> None:
        super().__init__(grid)
        self._came: queue.SimpleQueue[tuple[str, list[Any] | BaseException]] = queue.SimpleQueue()
        self._being_fetched: set[str] = set()

    def _pull(self, messages: Iterable[str]) -> Iterable[Any]:
        """Replies that are here completely."""
        threads = self._fetch_new([name for name in messages if name not in self._being_fetched])
        end = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        while not self._came.empty():
            name, came = self._came.get()
            self._being_fetched.discard(name)
            if isinstance(came, BaseException):
                raise came
            yield from came

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
