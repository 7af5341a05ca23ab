"""What the commands that recommend share: their options, and how a list is shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.training.lists import Price, TopList

Length = Annotated[int, typer.Option("-n", help="How many items.")]
By = Annotated[
    str,
    typer.Option(metavar="list|rating", help="Rank by the model's weights for lists, or by predicted ratings."),
]
IncludeSeen = Annotated[bool, typer.Option("--include-seen", help="List items that are rated already, too.")]
Explore = Annotated[
    float, typer.Option(metavar="X", help="From 0, the best items, to 1, items unlike each other; shows the price.")
]
Why = Annotated[bool, typer.Option("--why/--no-why", help="Name the rated items that speak most for each.")]
_WORDS = "because of"


def show_top_list(found: TopList, title: str = "") -> None:
    """The list as a table, and below it what exploring cost."""
    why = any(item.because for item in found.items)
    headings = ["title", "item", "score", "predicted rating", *([_WORDS] if why else [])]
    rows = []
    for item in found.items:
        row = [item.title or str(item.item), str(item.item), f"{item.score:.3f}", f"{item.rating:.2f}"]
        row += ["; ".join(reason.title or str(reason.item) for reason in item.because)] if why else []
        rows.append(row)
    show_table(headings, rows, title, words=(_WORDS,))
    if found.price is not None:
        say(f"explored: {price_in_words(found.price)}")


def price_in_words(price: Price) -> str:
    """What exploring changes, means over the list: without it → with it."""
    plain, explored = price.plain, price.explored
    return (
        f"score {plain.score:.3f} → {explored.score:.3f}, "
        f"predicted rating {plain.rating:.2f} → {explored.rating:.2f}, "
        f"ratings of an item {plain.popularity:.0f} → {explored.popularity:.0f}, "
        f"similarity of two items {plain.similarity:.2f} → {explored.similarity:.2f}"
    )


def as_rows(found: TopList, **more: Any) -> list[dict[str, Any]]:
    """The list for JSON, a row per item; each row has what exploring changed in the whole list, null without it."""
    price = None if found.price is None else asdict(found.price)
    return [{**more, **asdict(item), "price": price} for item in found.items]
