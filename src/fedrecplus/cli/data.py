"""``fedrecplus data``: which sets there are, fetching one, and what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli import options as shared
from fedrecplus.cli.display import say, show_list, show_loading, show_table
from fedrecplus.data import (
    KNOWN,
    SYNTHETIC,
    FileOptions,
    SyntheticOptions,
    cached_path,
    describe,
    load,
    shard_ratings,
    shard_synthetic,
)
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
    say("\nOr the path of a file of your own: CSV, TSV, '::', JSON or Parquet, gzipped or not.")


@data_app.command("get")
def get(name: Annotated[str, typer.Argument(help="A known name, such as ml-100k.")]) -> None:
    """Fetch a data set into the cache."""
    if name not in KNOWN:
        raise unknown_name("data set", name, KNOWN)
    ratings = shared.load_with_bar(name, FileOptions())
    say(f"{name}: {len(ratings):,} ratings, kept in {cached_path(name)}")
    _note_other_size(name, len(ratings))


@data_app.command("info")
@shared.reads_own_files
def info(
    data: Annotated[str, typer.Argument(metavar="NAME-OR-FILE", help="A known name, synthetic, or a file.")],
    json_file: shared.JsonFile = None,
    *,
    options: FileOptions,
) -> None:
    """Show what is in a data set."""
    shared.check_file_place(json_file)
    ratings = shared.load_with_bar(data, options)
    from fedrecplus.training import choose, left_out_of_sums  # here: it brings the engines, which no other needs

    choice = choose(ratings, validate=False)
    left_out = left_out_of_sums(ratings, choice.config)
    facts = {**describe(ratings), "algorithm": choice.config.algorithm, "left_out_of_sums": left_out}
    show_list([*_lines(facts), ("train takes", f"{choice.config.algorithm}, unless a validation cut says otherwise")])
    write_json_to(json_file, facts)
    _note_other_size(data, len(ratings))


@data_app.command("shard")
@shared.reads_own_files
def shard(
    data: Annotated[str, typer.Argument(metavar="NAME-OR-FILE", help="A known name, synthetic, or a file.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the files go.")],
    shards: Annotated[int, typer.Option(min=1, help="How many; no more workers than this can share the work.")] = 8,
    folds: Annotated[int, typer.Option(min=2, help="Folds to put ratings into, for tests.")] = 5,
    split_by: shared.SplitBy = None,
    seed: shared.Seed = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the shards in the folder.")] = False,
    *,
    options: FileOptions,
) -> None:
    """Write a data set as Parquet files with some clients each, to train on by `--set engine=ray`.

    A known set or a file is read whole and then written. A synthetic set is made up and written shard by shard, so it
    may be larger than memory. Without --shards there are 8; the number is part of the result's last digits, that of
    workers isn't.
    """
    name, _, settings = data.partition(":")
    shard_options: dict[str, Any] = {"folds": folds, "seed": seed or 0, "overwrite": overwrite}
    with show_loading() as progress:
        if name == SYNTHETIC and split_by is None:
            folder = shard_synthetic(SyntheticOptions.parse(settings), out, shards, **shard_options, progress=progress)
        else:
            ratings, scheme = load(data, options=options, progress=progress), shared.split_of(split_by, options, None)
            folder = shard_ratings(ratings, out, shards, split=scheme, **shard_options, progress=progress)
    say(f"{folder.ratings:,} ratings of {folder.clients:,} clients in {len(folder.shards)} shards: {out}")


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """What ``describe`` found, in words."""
    metadata = ", ".join(f"{what} {share:.0%}" for what, share in facts["metadata"].items())
    quantiles = ", ".join(f"{name} {value:,.0f}" for name, value in facts["activity"].items())
    return [
        ("name", facts["name"]),
        ("clients", f"{facts['clients']:,}"),
        ("items", f"{facts['items']:,}"),
        ("ratings", f"{facts['ratings']:,}"),
        ("sparsity", f"{1 - facts['density']:.2%} of all pairs of client and item have no rating"),
        ("times", "none" if facts["times"] is None else f"{facts['times']['first']} to {facts['times']['last']}"),
        ("scale", f"{facts['scale']} ({facts['levels']:,} levels)"),
        ("mean rating", f"{facts['mean']:.3f}"),
        *_histogram(facts["histogram"]),
        ("per client", f"mean {facts['mean_activity']:,.1f}, {quantiles}"),
        ("top tenth", f"{facts['top_decile_share']:.1%} of ratings go to the most popular tenth of the items"),
        (
            "rare items",
            f"have {facts['left_out_of_sums']:.1%} of ratings: too few raters each for a row in secure sums",
        ),
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
