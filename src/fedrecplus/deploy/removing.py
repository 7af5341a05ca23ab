"""Deleting everything that a device keeps."""

from __future__ import annotations

import os
import shutil

from fedrecplus.deploy import database
from fedrecplus.deploy.certificates import NODE_KEY, NODE_PUBLIC
from fedrecplus.deploy.node import NodeHome
from fedrecplus.errors import UserError


def forget(home: NodeHome) -> None:
    """Delete store, key and Flower's files, and nothing else: other files in the folder stay.

    Contents are written over first. On flash storage old blocks may outlive that: full-disk encryption is the remedy.
    """
    if not home.store.exists() and not (home.path / NODE_KEY).exists():
        raise UserError(f"{home.path} holds no device", "check --home")
    for name in (home.store, home.store.with_name(home.store.name + "-wal"), home.path / NODE_KEY):
        if name.exists():
            with name.open("r+b") as file:
                file.write(b"\0" * name.stat().st_size)
                file.flush()
                os.fsync(file.fileno())
    database.remove(home.store)
    for name in (home.path / NODE_KEY, home.path / NODE_PUBLIC):
        name.unlink(missing_ok=True)
    shutil.rmtree(home.path / "flower", ignore_errors=True)
