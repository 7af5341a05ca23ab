"""A node's side of Flower as a command: its home folder, its key, and the SuperNode kept alive."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.deploy.certificates import NODE_KEY, make_node_key
from fedrecplus.deploy.client_environment import SHARE_ERROR, STORE
from fedrecplus.deploy.environment import flower_environment, is_loopback, split_address
from fedrecplus.deploy.extra import require_flower
from fedrecplus.deploy.supernode_process import POLL
from fedrecplus.errors import UserError

STORE_FILE = "store.db"


@dataclass(frozen=True)
class NodeHome:
    """A folder with all that a device keeps: the store of ratings, its key, the server's authority."""

    path: Path

    @property
    def store(self) -> Path:
        """The store of ratings."""
        return self.path / STORE_FILE

    def make_key(self) -> Path:
        """The public key to hand to the server's operator; made on first use."""
        return make_node_key(self.path)

    def command(self, address: str, *, ca: Path | None, insecure: bool) -> list[str]:
        """What starts the SuperNode."""
        require_flower()
        host, _ = split_address(address)
        if insecure and not is_loopback(host):
            raise UserError(f"--insecure to {host} would send uploads in the clear", "give the server's --ca instead")
        safety = ["--insecure"]
        if not insecure:
            if ca is None or not ca.exists():
                raise UserError("the server's ca.crt is needed", "copy it from the server and give it with --ca")
            self.make_key()
            key = (self.path / NODE_KEY).absolute()
            safety = ["--root-certificates", str(ca.absolute()), "--auth-supernode-private-key", str(key)]
        return [
            sys.executable, "-m", "fedrecplus.deploy.supernode_process", "--superlink", address,
            "--host", "127.0.0.1", "--isolation", "subprocess", *safety,
        ]  # fmt: skip

    def environment(self, *, poll: float, share_error: bool) -> dict[str, str]:
        """For the SuperNode and the app that it starts for each message."""
        more = {STORE: str(self.store.absolute()), SHARE_ERROR: "yes" if share_error else "no", POLL: str(poll)}
        return flower_environment(self.path.absolute(), **more)
