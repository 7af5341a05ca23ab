"""``fedrecplus report``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.options import check_file_place
from fedrecplus.files import read_text, write_text
from fedrecplus.provenance import command_line


def report_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN…",
            help="Run folders, JSON files of compare, family, ablate, theory, audit, or folders of them.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("report.html"),
    markdown_file: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="The frontier's tables: comparisons, audits and runs."),
    ] = None,
    into: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Markdown files whose tables between <!-- NAME --> and <!-- end --> to renew."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Its heading.")] = "FedRec+ measured",
) -> None:
    """Make one page of runs and studies: tables, plots, and where every number comes from.

    \b
    Examples:
      fedrecplus report runs/demo
      fedrecplus report runs/paper audit.json --out report.html
      fedrecplus report comparison.json audit.json --markdown frontier.md

    The page is one file that needs no network. The privacy–accuracy frontier joins
    comparisons with audits of the same algorithm, channel, rows and budget.
    """
    from fedrecplus.web import report  # here: it brings what most commands don't need

    check_file_place(out, markdown_file)
    inputs = report.gather(paths)
    write_text(out, report.page(inputs, title, command_line(sys.argv)))
    if markdown_file is not None:
        contents = ([each.content for each in inputs if each.kind == kind] for kind in ("comparison", "audit", "run"))
        write_text(markdown_file, report.to_markdown(*contents))
    for document in into or []:
        text = read_text(document, "give a Markdown file with marks, such as docs/paper.md")
        write_text(document, report.renewed(text, inputs))
    kinds = sorted({each.kind for each in inputs})
    counted = f"{len(inputs)} of {', '.join(kinds)}" if len(inputs) > 1 else kinds[0]
    say(f"{out}: {counted}, {out.stat().st_size / 1e6:.1f} MB")
