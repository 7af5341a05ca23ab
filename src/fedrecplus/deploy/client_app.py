"""The Flower app on a node: a message in, the client function, a message out."""

from __future__ import annotations

import os
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedrecplus.deploy.answering import answer
from fedrecplus.deploy.checks import Refusal
from fedrecplus.deploy.client_environment import SHARE_ERROR, STORE
from fedrecplus.deploy.messages import packet_of, record_of
from fedrecplus.deploy.wire import refusal_packet

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """One round. Nothing is raised: Flower would send an exception's text to the server."""
    try:
        packet = packet_of(message.content)
    except Refusal:
        return Message(record_of(refusal_packet("request")), reply_to=message)
    # from the environment, which the node's owner sets, not from the run's config, which the server does
    store = Path(str(context.node_config.get("store") or os.environ.get(STORE, "")))
    share = str(context.node_config.get("share-error") or os.environ.get(SHARE_ERROR, "")) == "yes"
    return Message(record_of(answer(packet, store, share_error=share)), reply_to=message)
