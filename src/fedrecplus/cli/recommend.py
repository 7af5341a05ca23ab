"""``fedrecplus recommend``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from fedrecplus.cli.declaring import takes
from fedrecplus.cli.display import say
from fedrecplus.cli.lists import as_rows, list_options, show_top_list
from fedrecplus.cli.options import Allow, JsonFile, check_file_place
from fedrecplus.errors import UserError
from fedrecplus.files import beside, write_json_to
from fedrecplus.training import ListOptions, Recommender

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": lambda lists, place: _flat(lists).write_csv(place),
    ".json": pl.DataFrame.write_json,
}


def _flat(lists: pl.DataFrame) -> pl.DataFrame:
    """Reasons as one text, with bars between ids: CSV has no lists."""
    if "because" not in lists.columns:
        return lists
    return lists.with_columns(pl.col("because").cast(pl.List(pl.String)).list.join("|"))


@takes(wanted=list_options)
def recommend_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    client: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A client's id in the data; may be repeated.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Lists of all clients.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the lists, a line per item: .parquet, .csv or .json."),
    ] = None,
    allow: Allow = None,
    json_file: JsonFile = None,
    *,
    wanted: ListOptions,
) -> None:
    """Show the items that a client hasn't rated and would like best, and which of its own items speak for them.

    \b
    Examples:
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --client 196 -n 5
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --client 196 --client 22 --explore 0.3
      fedrecplus recommend runs/ml-100k-fedrec+secure-fold0-seed0 --client 196 --after 50
      fedrecplus recommend runs/ml-100k-fedrec+secure-fold0-seed0 --client 196 --session 50,172
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --all --out lists.parquet

    A model with weights for lists ranks by them: what people like this one choose. Others rank by predicted rating, as
    --by rating does for all. Where times are known and validation found that it helps, what was chosen last counts
    most; --any-time does without. --after and --session ask for a moment. --explore prefers items that are unlike each
    other and prints what that changes: the scores, the predicted ratings, the popularity and the likeness of what is
    listed.
    """
    check_file_place(json_file, out)
    if bool(client) == everybody:
        raise UserError("--client names whose lists are made, --all means everybody's", "give one of them")
    if out is not None and json_file is not None:
        raise UserError("--out and --json both write the lists", "give one of them")
    if out is not None and out.suffix not in _WRITERS:
        raise UserError(f"--out {out}: no such kind of file", f"give one that ends with {', '.join(_WRITERS)}")
    recommender = Recommender.load(run, allow or ())
    client = recommender.clients.client_ids.tolist() if client is None else client
    if out is not None:
        lists = pl.DataFrame(recommender.lists(list(dict.fromkeys(client)), wanted))
        with beside(out) as place:
            _WRITERS[out.suffix](lists, place)
        say(f"{out}: lists of {len(client):,} clients")
        return
    shown = [(one, recommender.client(one).top_list(wanted)) for one in dict.fromkeys(client)]
    write_json_to(json_file, [row for one, top_list in shown for row in as_rows(top_list, user=one)])
    for number, (one, top_list) in enumerate(shown):
        if number:
            say("")
        show_top_list(top_list, f"client {one}" if len(shown) > 1 else "")
