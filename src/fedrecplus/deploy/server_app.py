"""The Flower app on the server: all rounds of one run folder."""

from __future__ import annotations

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedrecplus.deploy.messages import FlowerLink
from fedrecplus.deploy.serving import serve
from fedrecplus.deploy.unblocked import UnblockedGrid

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run what the folder asks for, from its checkpoint on."""
    serve(FlowerLink(UnblockedGrid(grid)), Path(str(context.run_config["folder"])))
