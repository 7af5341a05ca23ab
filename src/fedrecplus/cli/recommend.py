"""``fedrecplus recommend``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.lists import (
    After,
    AnyTime,
    By,
    Explore,
    IncludeSeen,
    Length,
    Session,
    Why,
    as_rows,
    items_of,
    show_top_list,
)
from fedrecplus.cli.options import Allow, JsonFile, check_file_place
from fedrecplus.files import write_json_to
from fedrecplus.training.lists import Wish
from fedrecplus.training.recommender import Recommender


def recommend_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    client: Annotated[list[str], typer.Option(metavar="ID", help="A client's id in the data; may be repeated.")],
    n: Length = 10,
    by: By = "list",
    include_seen: IncludeSeen = False,
    explore: Explore = 0.0,
    any_time: AnyTime = False,
    after: After = None,
    session: Session = None,
    why: Why = True,
    allow: Allow = None,
    json_file: JsonFile = None,
) -> None:
    """Show the items that a client hasn't rated and would like best, and which of its own items speak for them.

    \b
    Examples:
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --client 196 -n 5
      fedrecplus recommend runs/ml-100k-fedrec+-fold0-seed0 --client 196 --client 22 --explore 0.3
      fedrecplus recommend runs/ml-100k-fedrec+secure-fold0-seed0 --client 196 --after 50
      fedrecplus recommend runs/ml-100k-fedrec+secure-fold0-seed0 --client 196 --session 50,172

    A model with weights for lists ranks by them: what people like this one choose. Others rank by predicted rating, as
    --by rating does for all. Where times are known and validation found that it helps, what was chosen last counts
    most; --any-time does without. --after and --session ask for a moment. --explore prefers items that are unlike each
    other and prints what that changes: the scores, the predicted ratings, the popularity and the likeness of what is
    listed.
    """
    check_file_place(json_file)
    wish = Wish(n, by, not include_seen, explore, why, not any_time, after, items_of(session))
    recommender = Recommender.load(run, allow or ())
    lists = [(one, recommender.client(one).top_list(wish)) for one in dict.fromkeys(client)]
    write_json_to(json_file, [row for one, found in lists for row in as_rows(found, client=one)])
    for number, (one, found) in enumerate(lists):
        if number:
            say("")
        show_top_list(found, f"client {one}" if len(lists) > 1 else "")
