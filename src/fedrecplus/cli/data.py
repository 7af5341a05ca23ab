"""``fedrecplus data``: which sets there are, fetching one, and what is in one."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fedrecplus.data import FileOptions, describe, load, progress_bar
from fedrecplus.data.movielens.cache import cached_path
from fedrecplus.data.movielens.sets import KNOWN
from fedrecplus.errors import unknown_name

data_app = typer.Typer(help="Data sets: list, fetch, look into.", no_args_is_help=True)

_PIPED_WIDTH = 120


@data_app.command("list")
def list_sets() -> None:
    """List the data sets that are known by name."""
    table = Table("name", "clients", "items", "ratings", "scale", "here", box=None, pad_edge=False)
    for known in KNOWN.values():
        here = "yes" if cached_path(known.name).exists() else "no"
        counts = (f"{count:,}" for count in (known.clients, known.items, known.ratings))
        table.add_row(known.name, *counts, str(known.scale), here)
    table.add_row("synthetic", "any", "any", "any", "any", "made")
    _console().print(table)
    _console().print("\nOr the path of a file of your own: CSV, TSV, '::' or Parquet, gzipped or not.", highlight=False)


@data_app.command("get")
def get(name: Annotated[str, typer.Argument(help="A known name, such as ml-100k.")]) -> None:
    """Fetch a data set into the cache."""
    if name not in KNOWN:
        raise unknown_name("data set", name, KNOWN)
    with progress_bar() as progress:
        ratings = load(name, progress=progress)
    _console().print(f"{name}: {len(ratings):,} ratings, kept in {cached_path(name)}", highlight=False, soft_wrap=True)
    _note_other_size(name, len(ratings))


@data_app.command("info")
def info(
    data: Annotated[str, typer.Argument(metavar="NAME-OR-FILE", help="A known name, synthetic, or a file.")],
    user_column: Annotated[str | None, typer.Option(help="Column of users, by name or number.")] = None,
    item_column: Annotated[str | None, typer.Option(help="Column of items, by name or number.")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Column of ratings, by name or number.")] = None,
    separator: Annotated[str | None, typer.Option(help="What stands between columns.")] = None,
    scale: Annotated[str | None, typer.Option(help="Rating scale, LOW:HIGH:STEP.")] = None,
    duplicates: Annotated[str, typer.Option(help="An item rated twice: error, last or mean.")] = "error",
) -> None:
    """Show what is in a data set."""
    options = FileOptions(user_column, item_column, rating_column, separator, scale, duplicates)
    with progress_bar() as progress:
        ratings = load(data, options=options, progress=progress)
    table = Table(box=None, pad_edge=False, show_header=False)
    for label, value in _lines(describe(ratings)):
        table.add_row(label, value)
    _console().print(table)
    _note_other_size(data, len(ratings))


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What ``describe`` found, in words."""
    metadata = ", ".join(f"{what} {share:.0%}" for what, share in facts["metadata"].items())
    quantiles = ", ".join(f"{name} {value:,.0f}" for name, value in facts["activity"].items())
    return [
        ("name", facts["name"]),
        ("clients", f"{facts['clients']:,}"),
        ("items", f"{facts['items']:,}"),
        ("ratings", f"{facts['ratings']:,}"),
        ("density", f"{facts['density']:.3%}"),
        ("scale", f"{facts['scale']} ({facts['levels']:,} levels)"),
        ("mean rating", f"{facts['mean']:.3f}"),
        *_histogram(facts["histogram"]),
        ("per client", f"mean {facts['mean_activity']:,.1f}, {quantiles}"),
        ("top tenth", f"{facts['top_decile_share']:.1%} of ratings go to the most popular tenth of the items"),
        ("known of items", metadata),
    ]


def _histogram(counts: dict[str, int], most_lines: int = 12) -> list[tuple[str, str]]:
    """A bar per level; nothing for scales with too many to look at."""
    if len(counts) > most_lines:
        return []
    total = sum(counts.values())
    bars = ((level, count, "█" * round(40 * count / max(counts.values()))) for level, count in counts.items())
    return [(f"  {level}", f"{count / total:6.1%} {bar}") for level, count, bar in bars]


def _note_other_size(name: str, ratings: int) -> None:
    """Somebody may have put something else into FEDRECPLUS_DATA under a known name."""
    if name in KNOWN and ratings != KNOWN[name].ratings:
        note = f"note: {name} as published has {KNOWN[name].ratings:,} ratings, this copy has {ratings:,}"
        _console().print(note, highlight=False, soft_wrap=True)


def _console() -> Console:
    # piped output has no width of its own; rich's 80 would cut names
    console = Console()
    return console if console.is_terminal else Console(width=_PIPED_WIDTH)
