"""``fedrecplus data``: which sets there are, fetching one, and what is in one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_list, show_table
from fedrecplus.cli.options import JsonFile, check_file_place, load_with_bar, reads_own_files
from fedrecplus.data import FileOptions, describe
from fedrecplus.data.movielens.cache import cached_path
from fedrecplus.data.movielens.sets import KNOWN
from fedrecplus.errors import unknown_name
from fedrecplus.files import write_json_to

data_app = typer.Typer(help="Data sets: list, fetch, look into.", no_args_is_help=True)


@data_app.command("list")
def list_sets() -> None:
    """List the data sets that are known by name."""
    rows = []
    for known in KNOWN.values():
        here = "yes" if cached_path(known.name).exists() else "no"
        counts = (f"{count:,}" for count in (known.clients, known.items, known.ratings))
        rows.append([known.name, *counts, str(known.scale), here])
    rows.append(["synthetic", "any", "any", "any", "any", "made"])
    show_table(["name", "clients", "items", "ratings", "scale", "here"], rows)
    say("\nOr the path of a file of your own: CSV, TSV, '::' or Parquet, gzipped or not.")


@data_app.command("get")
def get(name: Annotated[str, typer.Argument(help="A known name, such as ml-100k.")]) -> None:
    """Fetch a data set into the cache."""
    if name not in KNOWN:
        raise unknown_name("data set", name, KNOWN)
    ratings = load_with_bar(name, FileOptions())
    say(f"{name}: {len(ratings):,} ratings, kept in {cached_path(name)}")
    _note_other_size(name, len(ratings))


@data_app.command("info")
@reads_own_files
def info(
    data: Annotated[str, typer.Argument(metavar="NAME-OR-FILE", help="A known name, synthetic, or a file.")],
    json_file: JsonFile = None,
    *,
    options: FileOptions,
) -> None:
    """Show what is in a data set."""
    check_file_place(json_file)
    ratings = load_with_bar(data, options)
    facts = describe(ratings)
    show_list(_lines(facts))
    write_json_to(json_file, facts)
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
    """GroupLens replaces some sets from time to time."""
    if name in KNOWN and ratings != KNOWN[name].ratings:
        say(f"note: {name} as published has {KNOWN[name].ratings:,} ratings, this copy has {ratings:,}")
