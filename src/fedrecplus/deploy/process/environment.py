"""The environment of Flower's processes: no telemetry, no update check, no file outside the home they are given."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import socket
import sys
from pathlib import Path

from fedrecplus.errors import UserError

CA, SERVER, SERVER_KEY = "ca.crt", "server.crt", "server.key"
NODE_KEY, NODE_PUBLIC = "node.key", "node.pub"
FLOWER_APP = Path(__file__).with_name("flower_app")
"""what a server sends its nodes: names alone, no code"""


def require_flower() -> None:
    """Raise an error that names the extra, unless Flower is installed: it brings 200 MB no simulation needs."""
    if importlib.util.find_spec("flwr") is None:
        raise UserError("a deployment needs Flower, which isn't installed", "pip install 'fedrecplus[deploy]'")


def flower_environment(home: Path, **more: str) -> dict[str, str]:
    """For a process that keeps all its Flower files under ``home``."""
    (home / "flower").mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        # its own setting for how often a helper looks for work; a second by default
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
        **os.environ,
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_HOME": str(home / "flower"),
        # Flower starts its helpers by name: they are beside this interpreter
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONUNBUFFERED": "1",
        **more,
    }


def free_port(port: int = 0) -> int:
    """A port of this machine that nobody listens on; OSError where it must be this one and somebody does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


def server_port() -> int:
    """A free port for a server, which may be down for a while and come back to it.

    It is none of those that the system deals out to whoever asks for any: now and then one of its own nodes would get
    it while the server is down.
    """
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        first, last = 32_768, 2**16 - 1
    others = [port for port in range(10_000, 2**16) if not first <= port <= last]
    for port in random.sample(others, min(100, len(others))):
        with contextlib.suppress(OSError):  # somebody has it
            return free_port(port)
    return free_port()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nobody else can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    return host in ("localhost", "::1") or host.startswith("127.")


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` in two.

    >>> split_address("shop.example:9092")
    ('shop.example', 9092)
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"{address!r} is no address", "write HOST:PORT, such as fed.example.org:9092")
    return host.strip("[]"), int(port)
