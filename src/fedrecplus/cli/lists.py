"""What the commands that recommend share: their options, and how a list is shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrecplus.cli.declaring import names_in
from fedrecplus.cli.display import say, show_table, tell

if TYPE_CHECKING:
    from fedrecplus.training import Price, TopList

_WORDS = "because of"


def list_options(
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    by: Annotated[
        str, typer.Option(metavar="list|rating", help="Rank by the model's weights for lists, or by predicted ratings.")
    ] = "list",
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="List items that are rated already, too.")
    ] = False,
    explore: Annotated[
        float, typer.Option(metavar="X", help="From 0, the best items, to 1, items unlike each other; shows the price.")
    ] = 0.0,
    any_time: Annotated[
        bool,
        typer.Option("--any-time", help="What would be liked at any time: recent choices count no more than others."),
    ] = False,
    after: Annotated[
        str | None, typer.Option(metavar="ITEM", help="What goes with this item, as if just chosen.")
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="ITEM,ITEM", help="Make the list of these items alone, the latest last."),
    ] = None,
    why: Annotated[bool, typer.Option("--why/--no-why", help="Name the rated items that speak most for each.")] = True,
) -> Any:
    """How a list is to be made, as ``ListOptions``."""
    from fedrecplus.training import ListOptions  # here: who only rates an item need not wait for it

    return ListOptions(n, by, include_seen, explore, any_time, after, names_in(session), why)


def show_top_list(top_list: TopList, title: str = "") -> None:
    """The list as a table, and below it what exploring cost."""
    if not top_list.items:
        tell(f"note: {title or 'the list'} is empty: everything is rated, which --include-seen lists, too")
        return
    titled, why = (any(getattr(item, name) for item in top_list.items) for name in ("title", "because"))
    columns = {"title": [item.title or str(item.item) for item in top_list.items]} if titled else {}
    columns |= {"item": [str(item.item) for item in top_list.items]}
    columns |= {"score": [f"{item.score:.3f}" for item in top_list.items]}
    if not top_list.likes_alone:
        columns |= {"predicted rating": [f"{item.rating:.2f}" for item in top_list.items]}
    if why:
        columns |= {
            _WORDS: ["; ".join(each.title or str(each.item) for each in item.because) for item in top_list.items]
        }
    rows = list(zip(*columns.values(), strict=True))
    show_table(list(columns), rows, title, words=(_WORDS,))
    if top_list.price is not None:
        say(f"explored: {price_in_words(top_list.price, top_list.likes_alone)}")


def price_in_words(price: Price, likes_alone: bool = False) -> str:
    """What exploring changes, means over the list: without it → with it."""
    plain, explored = price.plain, price.explored
    rating = "" if likes_alone else f"predicted rating {plain.rating:.2f} → {explored.rating:.2f}, "
    return (
        f"score {plain.score:.3f} → {explored.score:.3f}, {rating}"
        f"{'likes' if likes_alone else 'ratings'} of an item {plain.popularity:.0f} → {explored.popularity:.0f}, "
        f"similarity of two items {plain.similarity:.2f} → {explored.similarity:.2f}"
    )


def as_rows(top_list: TopList, **more: Any) -> list[dict[str, Any]]:
    """The list for JSON, a row per item; each row has what exploring changed in the whole list, null without it."""
    price = None if top_list.price is None else asdict(top_list.price)
    return [{**more, **asdict(item), "price": price} for item in top_list.items]
