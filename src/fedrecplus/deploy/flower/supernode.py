"""Flower's SuperNode, changed: it runs no code but the installed package's, and neither sleeps nor imports so long.

A SuperLink sends its nodes the app to run. Ours holds names alone, so its bytes are known, and any other bundle is
refused. ``FEDRECPLUS_POLL`` says how long the loop that asks for messages sleeps. The helper that starts the app is
``superexec.py``. A shorter heartbeat lets a killed node come back sooner, since Flower locks out a key that it believes
connected. Run as a module with the arguments of ``flower-supernode``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.process import FLOWER_APP, POLL, end_with_parent, free_port

_HEARTBEAT = 10
_LOOP = "flwr.supernode.start_client_internal"


def shorter_sleeps(poll: float) -> SimpleNamespace:
    """The ``time`` module for Flower's loop: long sleeps become ``poll``, half seconds a quarter of that."""

    def sleep(seconds: float) -> None:
        time.sleep(min(seconds, poll if seconds > 1.0 else max(poll / 4, 0.02)))

    return SimpleNamespace(**{**vars(time), "sleep": sleep})


def own_superexec() -> SimpleNamespace:
    """The ``subprocess`` module for Flower's loop: starts our SuperExec where Flower would start its own."""

    def start(command: list[str], **more: Any) -> Any:
        if command[0] == "flower-superexec":
            command = [sys.executable, "-m", "fedrecplus.deploy.flower.superexec", *command[1:]]
        return subprocess.Popen(command, **more)

    return SimpleNamespace(**{**vars(subprocess), "Popen": start})


def bundle_digest() -> str:
    """The hash of the bundle that this package sends and accepts."""
    return hashlib.sha256(private.get("flwr.cli.build.build_fab_from_disk")(FLOWER_APP)).hexdigest()


def refuse_other_bundles(read: Any, expected: str) -> Any:
    """Wrap the function that Flower reads a bundle with: other bytes than ours are never unpacked."""

    def checked(content: Any, *rest: Any) -> Any:
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != expected:
            raise PermissionError("the server sent other code than the installed fedrecplus: refused")
        return read(content, *rest)

    return checked


def main() -> None:
    """``flower-supernode`` with the changes."""
    end_with_parent()
    if "--port" not in sys.argv:  # for its own helpers; another one at each start, since somebody may have the last one
        sys.argv += ["--port", str(free_port())]
    read = private.get(f"{_LOOP}.get_fused_config_from_fab")
    private.put(f"{_LOOP}.get_fused_config_from_fab", refuse_other_bundles(read, bundle_digest()))
    private.put(f"{_LOOP}.time", shorter_sleeps(float(os.environ.get(POLL, "3"))))
    private.put(f"{_LOOP}.subprocess", own_superexec())
    for module in ("flwr.supernode.fleet_http_connection", "flwr.supercore.heartbeat"):
        private.put(f"{module}.HEARTBEAT_DEFAULT_INTERVAL", _HEARTBEAT)
    private.get("flwr.supernode.cli.flower_supernode")()


if __name__ == "__main__":
    main()
