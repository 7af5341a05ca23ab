"""What a node notes in the device's store, to go on after a kill."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.deploy.device import Store
from fedrecplus.errors import UserError

NODE_KEY, NODE_PUBLIC = "node.key", "node.pub"
"""files of its key, in its home"""
log = logging.getLogger("fedrecplus")


@dataclass(frozen=True)
class NodeFacts:
    """Facts by their names. A store that can't be read or written is said in the log, and the node goes on."""

    store: Path

    def recall(self, name: str) -> str:
        """A fact that was kept; empty where there is none."""
        try:
            with Store.open(self.store) as store:
                return str(store.fact(name) or "")
        except UserError as error:  # an answer says so in a word, the log in more
            log.error("%s", error)
            return ""

    def remember(self, name: str, value: str) -> None:
        """Keep a fact. Without it, only a kill at a bad moment costs more."""
        try:
            with Store.open(self.store) as store, store.changing():
                store.put("facts", [(name, value)])
        except UserError as error:
            log.error("%s", error)
