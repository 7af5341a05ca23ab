"""A device's home folder: the store of ratings, the node's key, and what else is kept there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.deploy.device import remove_store
from fedrecplus.errors import UserError

STORE = "store.db"
LOCK, LOG, METRICS = "node.lock", "node.log", "node.prom"
CA, MODEL = "ca.crt", "model"
"""what `fedrecplus join` brings: the server's authority, and its model"""
JOINING = "joining"
"""folder of the key and the authority for another server, until that has let this node in"""


@dataclass(frozen=True)
class NodeHome:
    """A folder with all that a device keeps."""

    path: Path

    @property
    def store(self) -> Path:
        """The store of ratings."""
        return self.path / STORE

    @property
    def first_model(self) -> Path | None:
        """The model that came with an invitation, for the time before the first round."""
        return self.path / MODEL if (self.path / MODEL / "model.safetensors").exists() else None

    def make_key(self) -> Path:
        """The public key to hand to the server's operator; made on first use."""
        from fedrecplus.deploy.node.keys import make_node_key  # here: it brings the cryptography

        return make_node_key(self.path)

    def command(
        self, address: str, *, ca: Path | None, insecure: bool, poll: float = 30.0, share_error: bool = False
    ) -> list[str]:
        """What starts the node as a process of its own."""
        self.make_key()
        options = ["--insecure"] if insecure else []
        if ca is not None and not insecure:
            options = ["--ca", str(ca.absolute())]
        options += ["--share-error"] if share_error else []
        return [
            sys.executable, "-m", "fedrecplus.deploy.node", address, "--home", str(self.path.absolute()),
            "--poll", str(poll), "--end-with-parent", *options,
        ]  # fmt: skip

    def forget(self) -> tuple[list[str], list[str]]:
        """Delete all that fedrecplus keeps here; returns the names of what was deleted, and of what is there still.

        Contents are written over first. On flash storage old blocks may outlive that: full-disk encryption helps.
        Files that others put there stay. A folder that is empty then goes, too.
        """
        from fedrecplus.deploy.node.keys import NODE_KEY, NODE_PUBLIC

        if not self.store.exists() and not (self.path / NODE_KEY).exists():
            raise UserError(f"{self.path} holds no device", "check --home")
        own = [STORE, f"{STORE}-wal", f"{STORE}-shm", f"{STORE}-journal", NODE_KEY, NODE_PUBLIC, LOG, METRICS, LOCK, CA]
        own += [f"{JOINING}/{name}" for name in (NODE_KEY, NODE_PUBLIC, CA)]
        found = [name for name in own if (self.path / name).exists()]
        try:
            for name in found:
                _write_zeros(self.path / name)
            remove_store(self.store)
            for name in found:
                (self.path / name).unlink(missing_ok=True)
        except PermissionError as error:  # Windows deletes no file that is open
            raise UserError(f"{error.filename}: {error.strerror}", "stop the node, then forget again") from None
        with contextlib.suppress(OSError):
            (self.path / JOINING).rmdir()
        if (self.path / MODEL / "model.safetensors").exists():
            shutil.rmtree(self.path / MODEL)
            found.append(MODEL)
        left = sorted(entry.name for entry in self.path.iterdir())
        if not left:
            with contextlib.suppress(OSError):  # the folder above may be somebody else's
                self.path.rmdir()
        return found, left


def _write_zeros(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
        file.flush()
        os.fsync(file.fileno())
