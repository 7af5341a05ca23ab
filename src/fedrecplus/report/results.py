"""Results of comparisons, beside what the paper and others print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.config import dumps, from_tables
from fedrecplus.experiments.published import Published, published
from fedrecplus.report.elements import Section, axis, bullets, details, mean_sd, paragraph, plot, table, text, trace
from fedrecplus.report.origins import made_of_runs

PAPER = "FedRec+ paper"
PAPER_SETS = ("ml-100k", "ml-1m")
_HEADINGS = ("", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p")


def results_section(comparisons: Sequence[dict[str, Any]]) -> Section:
    """A table per comparison and data set. Beside one data set of the paper, the other is there even if not run."""
    parts = [
        paragraph(
            "Mean ± standard deviation over random folds, predictions clipped to the scale.",
            "NMSE is Σe²/Σr²; the paper gives no formula for its own.",
            "p: Wilcoxon's signed-rank test over clients, each one's RMSE averaged over folds, against the baseline.",
        )
    ]
    names = []
    for content in comparisons:
        for name in dict.fromkeys(row["dataset"] for row in content["summary"]):
            names.append(name)
            parts += _measured(name, content)
    for name in PAPER_SETS if set(names) & set(PAPER_SETS) else ():
        if name not in names:
            missing = paragraph(f"{name} was not run for this page: only what the paper prints is shown.")
            parts += [f"<h3>{text(name)}</h3>", missing, *_tables(name, [])]
    return Section("results", "Results", parts)


def _measured(name: str, content: dict[str, Any]) -> list[str]:
    ours = [row for row in content["summary"] if row["dataset"] == name]
    paper = [row for row in published(name) if row.source == PAPER]
    runs = [row for row in content["rows"] if row["dataset"] == name]
    named = {f"config of {row['algorithm']}": row["config"] for row in runs}
    configs = {name: dumps(from_tables(config, source=name)) for name, config in named.items()}
    trivial = [row for row in content.get("trivial", []) if row["dataset"] == name]
    found = [bullets(_findings(ours, paper)), _plot(name, ours, paper), made_of_runs([*runs, *trivial], configs)]
    return [f"<h3>{text(name)}</h3>", *_tables(name, ours), *found]


def _tables(name: str, ours: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for row in ours:
        test, interval = row["against_baseline"], f"{row['rmse']['low']:.4f} – {row['rmse']['high']:.4f}"
        p = f"{test['p']:.2g}" if test else "baseline"
        rows.append([row["algorithm"], *mean_sd(row, "mae", "rmse", "nmse"), interval, p])
    known = published(name)
    rows += [[row.system, *_printed(row), "", ""] for row in known if row.source == PAPER]
    others = [[f"{row.system} ({row.source})", *_printed(row)] for row in known if row.source != PAPER]
    return [table(_HEADINGS, rows), *([details("what others report", table(_HEADINGS[:4], others))] if others else [])]


def _printed(row: Published) -> list[str]:
    return [f"{row.mae:.4f}", f"{row.rmse:.4f}", "" if row.nmse is None else f"{row.nmse:.4f}"]


def _findings(ours: Sequence[dict[str, Any]], paper: Sequence[Published]) -> list[str]:
    """Whether our ordering is the paper's, and where trivial predictors stand: made from the numbers above."""
    errors = {row["algorithm"]: row["rmse"]["mean"] for row in ours}
    lines = []
    if {"fedrec", "fedrec+"} <= set(errors):
        gap = errors["fedrec"] - errors["fedrec+"]
        pair = {"fedrec", "fedrec+"}
        tests = [(row["algorithm"], row["against_baseline"]) for row in ours if row["against_baseline"]]
        p = next((f" (p = {test['p']:.2g})" for name, test in tests if {name, test["baseline"]} == pair), "")
        lines.append(f"fedrec+ has {abs(gap):.4f} {'lower' if gap > 0 else 'higher'} RMSE than fedrec here{p}.")
    if len(paper) >= 2:
        lines.append(f"In the paper, FedRec+ has {paper[0].rmse - paper[1].rmse:.4f} lower RMSE than FedRec.")
    trivial = errors.get("global-mean")
    worse = [f"{row.system} ({row.rmse:.4f})" for row in paper if trivial and row.rmse > trivial]
    if worse:
        lines.append(f"Always answering the global mean gives {trivial:.4f}, less than {' and '.join(worse)}.")
    return lines


def _plot(name: str, ours: Sequence[dict[str, Any]], paper: Sequence[Published]) -> str:
    """Dots, not bars: these need no zero on the axis, which would hide every difference."""
    errors, names = [row["rmse"]["mean"] for row in ours], [row["algorithm"] for row in ours]
    spreads = {"type": "data", "array": [row["rmse"]["sd"] for row in ours]}
    traces = [trace("measured", errors, names, "markers", error_x=spreads, marker={"size": 10})]
    if paper:
        errors, names = [row.rmse for row in paper], [row.system for row in paper]
        traces.append(trace("printed in the paper", errors, names, "markers", marker={"size": 10}))
    layout = {"xaxis": axis("RMSE"), "yaxis": {"automargin": True, "autorange": "reversed", "type": "category"}}
    caption = f"RMSE on {name}, mean ± sd over folds" + (", beside what the paper prints." if paper else ".")
    return plot(traces, layout, caption)
