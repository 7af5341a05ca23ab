"""An ablation as a table, CSV and Markdown."""

from __future__ import annotations

import csv
import io

from fedrecplus.experiments.ablate import FIGURES, Ablation
from fedrecplus.markdown import markdown_table

HEADINGS = ("MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p", "seconds", "KB up")


def table(ablation: Ablation) -> tuple[list[str], list[list[str]]]:
    """Headings and rows to show."""
    rows = []
    for cell in ablation.cells:
        figures, rmse = cell.figures, cell.figures["rmse"]
        row = [str(figures["mae"]), str(rmse), str(figures["nmse"]), f"{rmse.low:.4f} – {rmse.high:.4f}"]
        row += ["first" if cell.test is None else f"{cell.test.p:.2g}", f"{figures['seconds'].mean:.1f}"]
        row += [f"{figures['bytes_up_per_client_round'].mean / 1000:.1f}"]
        rows.append([*(str(value) for value in cell.settings.values()), *row])
    return [*ablation.vary, *HEADINGS], rows


def to_csv(ablation: Ablation) -> str:
    """A line per cell and fold."""
    text = io.StringIO()
    names = ["dataset", *ablation.vary, "fold", "seed", *FIGURES]
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for cell in ablation.cells:
        writer.writerows({**row, **cell.settings} for row in cell.rows)
    return text.getvalue()


def to_markdown(ablation: Ablation) -> str:
    """The table, with what it is about above it."""
    headings, rows = table(ablation)
    title = f"## {ablation.study}: {ablation.algorithm} on {ablation.dataset}, {ablation.folds} folds"
    return f"{title}\n\n{markdown_table(headings, rows)}"
