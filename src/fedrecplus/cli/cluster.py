"""``fedrecplus cluster``: how to start a cluster, and what one is doing."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.engines.ray import cluster_overview
from fedrecplus.files import write_json_to

cluster_app = typer.Typer(help="Training on several machines: how to start, and what they do.", no_args_is_help=False)

HOW = """\
On one machine nothing need be started: --set engine=ray starts Ray by itself.

On several machines, each with `pip install 'fedrecplus[ray]'`:
  1. on one of them               ray start --head --port=6379
  2. on each of the others        ray start --address=HEAD:6379
  3. shards where all can read    fedrecplus data shard ml-25m --out /shared/ml-25m --shards 64
  4. on the first                 RAY_ADDRESS=HEAD:6379 fedrecplus train --dataset /shared/ml-25m --algorithm fedmf \\
                                    --set engine=ray
  5. meanwhile                    fedrecplus cluster status --address HEAD:6379
  6. at the end, on each          ray stop

To try it in containers: examples/cluster/compose.yaml.

  FEDRECPLUS_WORKERS              how many workers; default: one per machine or graphics card, at least two
  FEDRECPLUS_SHARDS_IN_MEMORY     shards that a worker keeps between rounds; default: all that it works on

Neither changes a figure. Ray's ports have no password: let nobody else reach them (docs/cluster.md)."""


@cluster_app.callback(invoke_without_command=True)
def cluster(context: typer.Context) -> None:
    """Show how to start a cluster; `cluster status` says what one is doing."""
    if context.invoked_subcommand is None:
        say(HOW)


@cluster_app.command("status")
def status(
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Default: RAY_ADDRESS, else the one on this machine.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Show a cluster's machines, its workers, and which of them are slow."""
    check_file_place(json_file)
    overview = cluster_overview(address)
    machines = [
        [
            one["address"],
            str(one["cores"]),
            str(one["cards"]),
            f"{one['memory GB']:.1f}",
            f"{one['object store GB']:.1f}",
        ]
        for one in overview["machines"]
    ]
    show_table(["machine", "cores", "cards", "GB", "GB for objects"], machines)
    workers = [
        [
            one["worker"],
            one["machine"],
            str(one["pid"]),
            str(one["shards"]),
            str(one["calls"]),
            f"{one['seconds'] / max(one['calls'], 1):.2f}",
            f"{one['peak GB']:.2f}",
            f"{one['at']}{', slow' if one['slow'] else ''}",
        ]
        for one in overview["workers"]
    ]
    if workers:
        show_table(
            ["worker", "machine", "pid", "shards", "calls", "s per call", "peak GB", "at"], workers, words=["at"]
        )
    else:
        say("no training runs on it")
    write_json_to(json_file, overview)
