"""The server's Flower app, which runs all rounds of a folder."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedrecplus.deploy.flower.messages import UnblockedLink
from fedrecplus.deploy.server import serve

client = ClientApp()
"""Flower wants a bundle to name one; no node fetches or runs it: see ``deploy/light``"""
server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    """Run what the folder asks for, from its checkpoint on."""
    serve(UnblockedLink(grid), Path(str(context.run_config["folder"])))
