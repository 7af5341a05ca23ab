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
    "flwr.proto.runtime_pb2.PushAppMessagesRequest": "the app's messages to nodes",
    "flwr.proto.runtime_pb2.PushAppMessagesResponse": "tells the grid which objects to hand over",
    "flwr.proto.message_pb2.PullObjectRequest": "asks for an object on a node's behalf",
    "flwr.proto.message_pb2.PullObjectResponse": "hands the grid an object that came with its message",
    "flwr.proto.message_pb2.PushObjectRequest": "stores an object that came with its message",
    "flwr.proto.message_pb2.PushObjectResponse": "tells the grid that it handed an object over",
    "flwr.proto.message_pb2.ConfirmMessageReceivedResponse": "tells the grid that a reply is confirmed",
    "flwr.superlink.servicer.runtime.runtime_handlers.push_messages": "takes the app's messages",
    "flwr.superlink.servicer.runtime.runtime_handlers.pull_messages": "gives the app its replies",
    "flwr.superlink.cli.flower_superlink": "the SuperLink's program",
    "flwr.supercore.object_store.in_memory_object_store.InMemoryObjectStore": "keeps objects; ours bounds it",
    "flwr.supercore.cli.flower_superexec": "the SuperExec's program",
    "flwr.supercore.superexec.executor.types.LaunchResult.accepted": "what an executor says of a started app",
    "flwr.superlink.grid.http_grid.HttpGrid._runtime_client": "the grid's client towards the SuperLink",
    "flwr.superlink.cli.flwr_serverapp": "what the forked app of the server does",
    "flwr.supercore.constant.TaskType.SERVER_APP": "tells the server's app from other tasks",
    "flwr.common.constant.NOOP_FLWR_AID": "who owns nodes and runs where nobody logs in",
    "flwr.common.constant.NOOP_ACCOUNT_NAME": "the same, by name",
    "flwr.common.constant.SYSTEM_TIME_TOLERANCE": "how far clocks may differ",
    "flwr.common.constant.TIMESTAMP_TOLERANCE": "how long a signed time is good for",
    "flwr.common.serde.user_config_to_proto": "the run folder, as a run's setting",
    "flwr.proto.control_pb2.StartRunRequest": "starts our bundle",
    "flwr.proto.control_pb2.StopRunRequest": "stops it",
    "flwr.supercore.auth.typing.AccountInfo": "who starts it",
    "flwr.supercore.error.catalog.API_ERROR_MAP": "what a node is told of an error",
    "flwr.supercore.error.FlowerError": "an error of a handler's",
    "flwr.supercore.primitives.asymmetric.bytes_to_public_key": "a node's key in a header",
    "flwr.supercore.primitives.asymmetric.public_key_to_bytes": "and back",
    "flwr.supercore.primitives.asymmetric.verify_signature": "of a request's time",
    "flwr.supercore.protobuf.translation.PROTOBUF_REQUEST_TYPES": "the calls of the Fleet API",
    "flwr.superlink.servicer.control.control_handlers.start_run": "starts a run",
    "flwr.superlink.servicer.control.control_handlers.stop_run": "stops one",
    **{
        f"flwr.superlink.servicer.fleet.fleet_handlers.{name}": "answers a node"
        for name in (
            "register_node",
            "activate_node",
            "deactivate_node",
            "unregister_node",
            "send_node_heartbeat",
            "pull_messages",
            "push_messages",
            "get_run",
            "get_fab",
            "push_object",
            "pull_object",
            "confirm_message_received",
        )
    },
    # replaced
    "flwr.superlink.grid.http_grid.HttpGrid._connect": "sets ``_client``, which is replaced in copies of the grid",
    "flwr.supercore.object_store.object_store_factory.InMemoryObjectStore": "keeps objects without a bound",
    "flwr.superlink.main.create_app": "puts the gate before all other layers",
    "flwr.superlink.cli.flower_superlink.uvicorn": "serves connections without limits",
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
