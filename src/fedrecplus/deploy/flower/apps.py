"""The two Flower apps: a node's, which answers one message, and the server's, which runs all rounds of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedrecplus.deploy.device import answer
from fedrecplus.deploy.flower.messages import UnblockedLink, packet_of, record_of
from fedrecplus.deploy.process import SHARE_ERROR, STORE
from fedrecplus.deploy.server import serve
from fedrecplus.deploy.wire import Refusal, encode_refusal

client = ClientApp()
server = ServerApp()


@client.train()
def train(message: Message, context: Context) -> Message:
    """One round. Nothing is raised: Flower would send an exception's text to the server."""
    try:
        packet = packet_of(message.content)
    except Refusal:
        return Message(record_of(encode_refusal("request")), reply_to=message)
    # from the environment, which the node's owner sets, not from the run's config, which the server does
    store = Path(str(context.node_config.get("store") or os.environ.get(STORE, "")))
    share = str(context.node_config.get("share-error") or os.environ.get(SHARE_ERROR, "")) == "yes"
    return Message(record_of(answer(packet, store, share_error=share)), reply_to=message)


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Run what the folder asks for, from its checkpoint on."""
    serve(UnblockedLink(grid), Path(str(context.run_config["folder"])))
