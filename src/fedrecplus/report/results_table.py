"""The paper's table: what we measure, what the paper prints, what others print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.config import dumps, from_dict
from fedrecplus.experiments.published import Published, published
from fedrecplus.report.elements import Section, bullets, details, paragraph, plot, table, text
from fedrecplus.report.origins import made_of_runs

PAPER = "FedRec+ paper"
PAPER_SETS = ("ml-100k", "ml-1m")
SIGNIFICANT = 0.05


def results_section(comparisons: Sequence[dict[str, Any]]) -> Section:
    """A table per comparison and data set. Beside one data set of the paper, the other is there even if not run."""
    measured = [(name, content) for content in comparisons for name in _sets(content)]
    names = [name for name, _ in measured]
    missing = [name for name in PAPER_SETS if name not in names] if set(names) & set(PAPER_SETS) else []
    parts = [
        paragraph(
            "Mean ± standard deviation over random folds, predictions clipped to the scale.",
            "NMSE is Σe²/Σr²; the paper gives no formula for its own.",
            "p: Wilcoxon's signed-rank test over clients, each one's RMSE averaged over folds, against the baseline.",
        )
    ]
    for name, content in [*measured, *((name, None) for name in missing)]:
        parts.append(f"<h3>{text(name)}</h3>")
        parts += _one_set(name, content)
    return Section("table", "The table", parts)


def _sets(content: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in content["summary"]))


def _one_set(name: str, content: dict[str, Any] | None) -> list[str]:
    ours = [row for row in content["summary"] if row["dataset"] == name] if content else []
    known = published(name)
    paper = [row for row in known if row.source == PAPER]
    rows = [_our_cells(row) for row in ours] + [_published_cells(row) for row in paper]
    headings = ["", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p"]
    parts = [] if ours else [paragraph(f"{name} was not run for this page: only what the paper prints is shown.")]
    parts.append(table(headings, rows))
    others = [row for row in known if row.source != PAPER]
    if others:
        parts.append(details("what others report", table(headings[:4], [_published_cells(row)[:4] for row in others])))
    if content and ours:
        parts += [bullets(_orderings(ours, paper)), _dots(name, ours, known), _origin(content, name)]
    return parts


def _our_cells(row: dict[str, Any]) -> list[str]:
    rmse, test = row["rmse"], row["against_baseline"]
    spreads = [f"{row[name]['mean']:.4f} ± {row[name]['sd']:.4f}" for name in ("mae", "rmse", "nmse")]
    return [
        row["algorithm"],
        *spreads,
        f"{rmse['low']:.4f} – {rmse['high']:.4f}",
        f"{test['p']:.2g}" if test else "baseline",
    ]


def _published_cells(row: Published) -> list[str]:
    nmse = "" if row.nmse is None else f"{row.nmse:.4f}"
    system = row.system if row.source == PAPER else f"{row.system} ({row.source})"
    return [system, f"{row.mae:.4f}", f"{row.rmse:.4f}", nmse, "", ""]


def _orderings(ours: Sequence[dict[str, Any]], paper: Sequence[Published]) -> list[str]:
    """Whether our ordering is the paper's, and where trivial predictors stand: made from the numbers above."""
    errors = {row["algorithm"]: row["rmse"]["mean"] for row in ours}
    lines = []
    if {"fedrec", "fedrec+"} <= set(errors):
        gap = errors["fedrec"] - errors["fedrec+"]
        word = "lower" if gap > 0 else "higher"
        tests = {row["algorithm"]: row["against_baseline"] for row in ours}
        p = next((f" (p = {one['p']:.2g})" for one in _between(tests, "fedrec", "fedrec+")), "")
        lines.append(f"fedrec+ has {abs(gap):.4f} {word} RMSE than fedrec here{p}.")
    if len(paper) >= 2:
        lines.append(f"In the paper, FedRec+ has {paper[0].rmse - paper[1].rmse:.4f} lower RMSE than FedRec.")
    trivial = errors.get("global-mean")
    worse = [f"{row.system} ({row.rmse:.4f})" for row in paper if trivial and row.rmse > trivial]
    if worse:
        lines.append(f"Always answering the global mean gives {trivial:.4f}, less than {' and '.join(worse)}.")
    return lines


def _between(tests: Mapping[str, Any], one: str, other: str) -> list[dict[str, Any]]:
    """The test of one against the other, either way round, if it was made."""
    pairs = ((one, other), (other, one))
    return [tests[name] for name, baseline in pairs if tests[name] and tests[name]["baseline"] == baseline]


def _dots(name: str, ours: Sequence[dict[str, Any]], known: Sequence[Published]) -> str:
    """Dots, not bars: these need no zero on the axis, which would hide every difference."""
    printed = [row for row in known if row.source == PAPER]
    own = {
        "name": "measured", "y": [row["algorithm"] for row in ours], "x": [row["rmse"]["mean"] for row in ours],
        "error_x": {"type": "data", "array": [row["rmse"]["sd"] for row in ours]},
    }  # fmt: skip
    theirs = {"name": "printed in the paper", "y": [row.system for row in printed], "x": [row.rmse for row in printed]}
    look = {"type": "scatter", "mode": "markers", "marker": {"size": 10}}
    layout = {
        "xaxis": {"title": {"text": "RMSE"}},
        "yaxis": {"automargin": True, "autorange": "reversed", "type": "category"},
    }
    caption = f"RMSE on {name}, mean ± sd over folds" + (", beside what the paper prints." if printed else ".")
    return plot([{**look, **trace} for trace in (own, theirs) if trace["x"]], layout, caption)


def _origin(content: dict[str, Any], name: str) -> str:
    rows = [row for row in content["rows"] if row["dataset"] == name]
    configs = {f"config of {row['algorithm']}": dumps(from_dict(row["config"])) for row in rows}
    return made_of_runs([*rows, *(row for row in content.get("trivial", []) if row["dataset"] == name)], configs)
