"""A node's home folder and how its SuperNode is started."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.deploy.device import remove_store
from fedrecplus.deploy.process import environment
from fedrecplus.deploy.process.environment import NODE_KEY, NODE_PUBLIC, require_flower
from fedrecplus.errors import UserError

STORE, SHARE_ERROR, POLL = "FEDRECPLUS_STORE", "FEDRECPLUS_SHARE_ERROR", "FEDRECPLUS_POLL"
"""environment by which a node's owner, and nobody else, tells the app where the store is and what may be shared"""


@dataclass(frozen=True)
class NodeHome:
    """A folder with all that a device keeps: the store of ratings, its key, Flower's files."""

    path: Path

    @property
    def store(self) -> Path:
        """The store of ratings."""
        return self.path / "store.db"

    def make_key(self) -> Path:
        """The public key to hand to the server's operator; made on first use."""
        require_flower()
        from fedrecplus.deploy.process.certificates import make_node_key

        return make_node_key(self.path)

    def command(self, address: str, *, ca: Path | None, insecure: bool) -> list[str]:
        """What starts the SuperNode."""
        require_flower()
        host, _ = environment.split_address(address)
        if insecure and not environment.is_loopback(host):
            raise UserError(f"--insecure to {host} would send uploads in the clear", "give the server's --ca instead")
        safety = ["--insecure"]
        if not insecure:
            if ca is None or not ca.exists():
                raise UserError("the server's ca.crt is needed", "copy it from the server and give it with --ca")
            self.make_key()
            key = (self.path / NODE_KEY).absolute()
            safety = ["--root-certificates", str(ca.absolute()), "--auth-supernode-private-key", str(key)]
        return [
            sys.executable, "-m", "fedrecplus.deploy.flower.supernode", "--superlink", address,
            "--host", "127.0.0.1", "--isolation", "subprocess", *safety,
        ]  # fmt: skip

    def environment(self, *, poll: float, share_error: bool) -> dict[str, str]:
        """For the SuperNode and the app that it starts for each message."""
        more = {STORE: str(self.store.absolute()), SHARE_ERROR: "yes" if share_error else "no", POLL: str(poll)}
        return environment.flower_environment(self.path.absolute(), **more)

    def forget(self) -> None:
        """Delete store, key and Flower's files, and nothing else: other files in the folder stay.

        Contents are written over first. On flash storage old blocks may outlive that: full-disk encryption helps.
        """
        key = self.path / NODE_KEY
        if not self.store.exists() and not key.exists():
            raise UserError(f"{self.path} holds no device", "check --home")
        for name in (self.store, self.store.with_name(self.store.name + "-wal"), key):
            if name.exists():
                with name.open("r+b") as file:
                    file.write(b"\0" * name.stat().st_size)
                    file.flush()
                    os.fsync(file.fileno())
        remove_store(self.store)
        for name in (key, self.path / NODE_PUBLIC):
            name.unlink(missing_ok=True)
        shutil.rmtree(self.path / "flower", ignore_errors=True)
