"""``fedrecplus demo``: what ``make demo`` runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.compare import compare_with_bars, show_comparison, write_reports
from fedrecplus.cli.display import say
from fedrecplus.cli.options import JsonFile, check_file_place, load_with_bar
from fedrecplus.config import preset
from fedrecplus.data import FileOptions
from fedrecplus.provenance import Stopwatch

ALGORITHMS = ("fedmf", "fedrec", "fedrec++", "fedrec+", "fedrec+private", "fedrec+secure")
_SHOWN, _BESIDE = "fedrec+secure", "fedrec+"
"""whose page the last line opens, and whose item table its panel has beside"""


def demo_command(
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")] = "ml-100k",
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders and tables go.")] = Path("runs/demo"),
    json_file: JsonFile = None,
) -> None:
    """Train six algorithms on five folds of MovieLens-100K and set them beside what others published.

    A few minutes on two cores. Every run folder stays in runs/demo, which a second demo replaces.
    """
    check_file_place(json_file)
    watch = Stopwatch()
    ratings = load_with_bar(dataset, FileOptions())
    configs = [preset(name) for name in ALGORITHMS]
    comparisons = compare_with_bars([ratings], configs, out, folds=folds, overwrite=True)
    show_comparison(comparisons[0])
    write_reports(comparisons, watch.made(0), out, json_file)
    say(f"\nrun folders: {out}; tables: {out / 'comparison.md'}, .csv, .json")
    say(f"next: fedrecplus recommend {out / _SHOWN / 'fold-0'} --client {ratings.client_ids[0]}")
    say(f"open its page: fedrecplus page {out / _SHOWN / 'fold-0'} --beside {out / _BESIDE / 'fold-0'} --open")
