"""Ray itself: imported when it is needed, found by its address or started here, and how many workers it gets.

What changes no figure is no setting but comes from the environment: ``RAY_ADDRESS``, ``FEDRECPLUS_WORKERS`` and
``FEDRECPLUS_SHARDS_IN_MEMORY``.
"""

from __future__ import annotations

import importlib
import os
import socket
import warnings
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.workers import core_count

ADDRESS, WORKERS, IN_MEMORY = "RAY_ADDRESS", "FEDRECPLUS_WORKERS", "FEDRECPLUS_SHARDS_IN_MEMORY"
NAMESPACE = "fedrecplus"
_LEAST_WORKERS = 2
_PATIENCE = 10.0
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",  # a training is what the machine is for; Ray's own is 15
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # one shard's error is enough to tell
}


def ray_module() -> Any:
    """Ray, if the extra is installed."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise UserError(
            "a cluster needs Ray, which is not installed", "install it: pip install 'fedrecplus[ray]'"
        ) from None


def connect(address: str | None = None) -> Any:
    """Ray, connected: to what this process is connected to already, to an address, or to one started here.

    Where no address is given, it is that of ``RAY_ADDRESS``; ``auto`` stands for one that runs on this machine.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray, address = ray_module(), address or os.environ.get(ADDRESS)
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
    options |= {"address": address} if address else {"num_cpus": core_count(), "include_dashboard": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files open while it starts its processes
        try:
            _knock(address)
            ray.init(**options)
        except UserError:
            raise
        except (OSError, ValueError, RuntimeError) as error:
            raise UserError(
                f"no Ray cluster {'is running here' if address in (None, 'auto') else f'at {address}'}: {error}",
                f"`fedrecplus cluster` shows how to start one; without {ADDRESS} a training starts one by itself",
            ) from None
    return ray


def _knock(address: str | None) -> None:
    """Raise if nobody listens at HOST:PORT, at which Ray itself would go on knocking for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


def machines(ray: Any) -> list[dict[str, Any]]:
    """The cluster's machines that are alive."""
    return [node for node in ray.nodes() if node["Alive"]]


def worker_count(ray: Any, shards: int) -> int:
    """As many as ``FEDRECPLUS_WORKERS`` says; else one per machine or graphics card, at least two; at most the shards.

    One worker uses several cores by threads, so more of them bring little on one machine.
    """
    wanted = _number(WORKERS)
    cards = int(ray.cluster_resources().get("GPU", 0))
    return max(1, min(wanted or max(len(machines(ray)), cards, _LEAST_WORKERS), shards))


def threads_of_worker(ray: Any, workers: int) -> int:
    """Cores for each worker: all cores over all workers."""
    one_machine = len(machines(ray)) == 1
    cores = core_count() if one_machine else int(ray.cluster_resources().get("CPU", 1))
    return max(1, cores // workers)


def share_of_cards(ray: Any, workers: int) -> float:
    """Graphics cards for each worker: one, or a part of one where there are more workers than cards."""
    return min(1.0, float(ray.cluster_resources().get("GPU", 0)) / workers)


def shards_in_memory() -> int:
    """How many shards a worker keeps between rounds; 0: all that it works on."""
    return _number(IN_MEMORY)


def _number(name: str) -> int:
    value = os.environ.get(name, "").strip()
    if value and not value.isdigit():
        raise UserError(f"{name}={value!r} is no number", f"set {name} to a whole number, or unset it")
    return int(value or 0)
