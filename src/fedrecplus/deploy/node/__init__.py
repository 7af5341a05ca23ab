"""A device's node in one process: it speaks HTTP with its server, and loads nothing of the server's."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.deploy.node.connection import (
        ServerConnection as ServerConnection,
        is_loopback as is_loopback,
        split_address as split_address,
        trust as trust,
    )
    from fedrecplus.deploy.node.home import STORE as STORE, NodeHome as NodeHome
    from fedrecplus.deploy.node.joining import (
        Invitation as Invitation,
        fetch_model as fetch_model,
        fetch_task as fetch_task,
        fingerprint as fingerprint,
        join_by as join_by,
    )
    from fedrecplus.deploy.node.keys import (
        NODE_KEY as NODE_KEY,
        NODE_PUBLIC as NODE_PUBLIC,
        make_node_key as make_node_key,
        read_node_key as read_node_key,
        read_public_key as read_public_key,
    )
    from fedrecplus.deploy.node.metrics import NodeMetrics as NodeMetrics
    from fedrecplus.deploy.node.node import Node as Node
    from fedrecplus.deploy.node.pace import Pace as Pace
    from fedrecplus.deploy.node.running import (
        end_with_parent as end_with_parent,
        join as join,
        prepare as prepare,
        run_node as run_node,
        run_once as run_once,
    )
    from fedrecplus.deploy.node.witness import (
        HEADS as HEADS,
        fetch_log as fetch_log,
        read_heads as read_heads,
        witness_key as witness_key,
        witness_log as witness_log,
    )

lazily(__name__)
