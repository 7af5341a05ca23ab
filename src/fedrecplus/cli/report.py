"""``fedrecplus report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.options import check_file_place
from fedrecplus.files import write_text
from fedrecplus.provenance import command_line


def report_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN…", help="Run folders, JSON files of compare, ablate, theory, audit, or folders of them."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "FedRec+ measured",
) -> None:
    """Make one page of runs and studies: tables, plots, and where every number comes from.

    \b
    Examples:
      fedrecplus report runs/demo
      fedrecplus report runs/paper audit.json --out report.html

    The page is one file that needs no network. It wants the extra `report`.
    """
    from fedrecplus.report.build import page  # here: it brings what most commands don't need
    from fedrecplus.report.inputs import gather

    check_file_place(out)
    found = gather(paths)
    write_text(out, page(found, title, command_line(sys.argv)))
    kinds = sorted({each.kind for each in found})
    say(f"{out}: {len(found)} things ({', '.join(kinds)}), {out.stat().st_size / 1e6:.1f} MB")
