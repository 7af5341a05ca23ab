"""A running cluster from outside: its machines, the workers of trainings on it, and who is slow."""

from __future__ import annotations

import os
from typing import Any

from fedrecplus.engines.ray.cluster import slow_workers, statuses_of
from fedrecplus.engines.ray.connection import ADDRESS, NAMESPACE, connect, machines


def cluster_overview(address: str | None) -> dict[str, Any]:
    """Machines and workers of the cluster at an address; of the one on this machine if none is given."""
    ray = connect(address or os.environ.get(ADDRESS) or "auto")
    named = ray.util.list_named_actors(all_namespaces=True)
    names = sorted(one["name"] for one in named if one["namespace"] == NAMESPACE)
    actors = []
    for name in names:
        try:
            actors.append(ray.get_actor(name, namespace=NAMESPACE))
        except ValueError:  # it ended meanwhile
            continue
    workers = statuses_of(ray, actors)
    slow = slow_workers({f"{one['machine']} {one['pid']}": one["seconds"] for one in workers})
    for one in workers:
        one["slow"] = f"{one['machine']} {one['pid']}" in slow
    return {"machines": [_machine(node) for node in machines(ray)], "workers": workers}


def _machine(node: dict[str, Any]) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "address": node["NodeManagerAddress"],
        "cores": int(resources.get("CPU", 0)),
        "cards": int(resources.get("GPU", 0)),
        "memory GB": resources.get("memory", 0) / 1e9,
        "object store GB": resources.get("object_store_memory", 0) / 1e9,
    }
