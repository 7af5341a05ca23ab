"""``fedrecplus recommend``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import show_table
from fedrecplus.cli.options import Allow, JsonFile, check_file_place
from fedrecplus.files import write_json_to
from fedrecplus.training.recommender import Recommender


def recommend_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    client: Annotated[str, typer.Option(metavar="ID", help="The client's id in the data.")],
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    allow: Allow = None,
    json_file: JsonFile = None,
) -> None:
    """Show the items that a client hasn't rated and would like best.

    \b
    Example:
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --client 196 -n 5
    """
    check_file_place(json_file)
    best = Recommender.load(run, allow or ()).recommend(client, n)
    write_json_to(json_file, [asdict(item) for item in best])
    rows = [[item.title or str(item.item), str(item.item), f"{item.rating:.2f}"] for item in best]
    show_table(["title", "item", "predicted rating"], rows)
