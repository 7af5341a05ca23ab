"""Ray itself: imported when it is needed, found by its address or started here, and how many workers it gets.

What changes no figure is no setting but comes from the environment: ``RAY_ADDRESS``, ``FEDRECPLUS_WORKERS`` and
``FEDRECPLUS_SHARDS_IN_MEMORY``.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.workers import core_count

ADDRESS, WORKERS, IN_MEMORY = "RAY_ADDRESS", "FEDRECPLUS_WORKERS", "FEDRECPLUS_SHARDS_IN_MEMORY"
NAMESPACE = "fedrecplus"
_LEAST_WORKERS = 2
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
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


def connect() -> Any:
    """Ray, connected: to what this process is connected to already, to ``RAY_ADDRESS``, or to one started here."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    ray, address = ray_module(), os.environ.get(ADDRESS)
    if ray.is_initialized():
        return ray
    how: dict[str, Any] = {"namespace": NAMESPACE, "log_to_driver": False, "logging_level": "ERROR"}
    how |= {"address": address} if address else {"num_cpus": core_count(), "include_dashboard": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray leaves files open while it starts its processes
        try:
            ray.init(**how)
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"at {ADDRESS}={address}" if address else "here"
            raise UserError(
                f"no Ray cluster {where}: {error}",
                "`fedrecplus cluster` shows how to start one; without RAY_ADDRESS one is started on this machine",
            ) from None
    return ray


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


def shards_in_memory() -> int:
    """How many shards a worker keeps between rounds; 0: all that it works on."""
    return _number(IN_MEMORY)


def _number(name: str) -> int:
    value = os.environ.get(name, "").strip()
    if value and not value.isdigit():
        raise UserError(f"{name}={value!r} is no number", f"set {name} to a whole number, or unset it")
    return int(value or 0)
