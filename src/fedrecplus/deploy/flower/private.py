"""Every private part of Flower that this package uses or replaces. An upgrade that moves one fails by its name.

Flower promises ``flwr.app``, ``flwr.clientapp`` and ``flwr.serverapp``; nothing below is promised.
"""

from __future__ import annotations

import pkgutil
from typing import Any

PLACES = {
    # called
    "flwr.cli.build.build_fab_from_disk": "the bytes of the bundle that the server starts",
    "flwr.proto.runtime_pb2.PullAppMessagesRequest": "asks which replies were announced",
    "flwr.proto.runtime_pb2.PullAppMessagesResponse": "gives the grid one announced reply at a time",
    "flwr.superlink.cli.flower_superlink": "the SuperLink's program",
    "flwr.supercore.cli.flower_superexec": "the SuperExec's program",
    "flwr.supercore.constant.TaskType.CLIENT_APP": "tells a client's app from other tasks",
    "flwr.supercore.superexec.executor.types.LaunchResult.accepted": "what an executor says of a started app",
    "flwr.supercore.tls.validate_and_resolve_root_certificates": "the forked app's certificates",
    "flwr.supernode.runtime.run_clientapp.run_clientapp": "what the forked app does",
    "flwr.superlink.grid.http_grid.HttpGrid._runtime_client": "the grid's client towards the SuperLink",
    # replaced
    "flwr.superlink.grid.http_grid.HttpGrid._connect": "sets ``_client``, which is replaced in copies of the grid",
    "flwr.superlink.main._get_middleware": "puts the gate before all other layers",
    "flwr.supercore.superexec.run_superexec.get_executor": "it starts an interpreter for each message",
}
"""dotted path → why"""


def get(place: str) -> Any:
    """What is at one of ``PLACES``."""
    owner, name = _owner(place)
    return getattr(owner, name)


def put(place: str, value: Any) -> None:
    """Replace what is at one of ``PLACES``; it must be there."""
    get(place)
    setattr(*_owner(place), value)


def _owner(place: str) -> tuple[Any, str]:
    if place not in PLACES:
        raise KeyError(f"{place} is not listed in {__name__}.PLACES")
    path, _, name = place.rpartition(".")
    return pkgutil.resolve_name(path), name
