"""Results of comparisons, and what others print of theirs. The paper's own claims are in ``families``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus import experiments
from fedrecplus.config import dumps, from_tables
from fedrecplus.web.report.elements import (
    NAMES,
    PAPER_PRESET,
    Section,
    bullets,
    details,
    figure_axis,
    means,
    paragraph,
    plot,
    table,
    text,
)
from fedrecplus.web.report.inputs import made_of_runs

_OURS = "fedrec+"


def results_section(comparisons: Sequence[dict[str, Any]]) -> Section:
    """A table per comparison and data set."""
    parts = [
        paragraph(
            "Mean ± standard deviation over folds, predictions clipped to the scale.",
            "NMSE is Σe²/Σr²; the paper gives no formula for its own.",
            "p: Wilcoxon's signed-rank test over clients, each one's RMSE averaged over folds, against the baseline.",
            "NDCG@10 and its like: every item that a client hasn't rated in training competes, none is sampled.",
        )
    ]
    for content in comparisons:
        for comparison in experiments.Comparison.read(content):
            parts += _measured(comparison)
    return Section("results", "Results", parts)


def breakdown(tables: Sequence[experiments.Table]) -> str:
    """Tables that a reader may open."""
    return details("ranking measures, and figures by group", *(table(*each) for each in tables))


def _measured(comparison: experiments.Comparison) -> list[str]:
    named = {f"config of {row['algorithm']}": row["config"] for row in comparison.rows}
    configs = {name: dumps(from_tables(config, source=name)) for name, config in named.items()}
    others = (
        details("what others report", table(*experiments.published_table(comparison))) if comparison.published else ""
    )
    return [
        f"<h3>{text(comparison.title)}</h3>",
        table(*experiments.errors_table(comparison)),
        others,
        breakdown(experiments.details_tables(comparison)),
        bullets([*(f"{note}." for note in experiments.comparison_notes(comparison)), *_not_the_paper_s(comparison)]),
        *_plots(comparison),
        made_of_runs([*comparison.rows, *comparison.trivial], configs),
    ]


def _not_the_paper_s(comparison: experiments.Comparison) -> list[str]:
    """What a preset of ours is not."""
    errors = {one.algorithm: error.mean for one in comparison.summaries if (error := one.figures["rmse"])}
    if _OURS not in errors:
        return []
    own = f"{PAPER_PRESET} is, with {errors[PAPER_PRESET]:.4f}" if PAPER_PRESET in errors else f"{PAPER_PRESET} is"
    return [
        f"{_OURS} ({errors[_OURS]:.4f}) is not the paper's algorithm: it trains another model, with public means and "
        f"the catalogue. {own}. Presets differ in many settings, so no difference here speaks for one idea."
    ]


def _plots(comparison: experiments.Comparison) -> list[str]:
    about = f"on {comparison.title}, mean ± sd over folds"
    errors = {one.algorithm: error for one in comparison.summaries if (error := one.figures["rmse"])}
    lists = {
        experiments.LIST_NAMES.get(one.algorithm, one.algorithm): ndcg
        for one in comparison.summaries
        if (ndcg := one.ranking["ndcg@10"])
    }
    shown = [
        (errors, figure_axis("RMSE"), f"RMSE {about}."),
        (lists, figure_axis("NDCG@10", rangemode="tozero"), f"NDCG@10 {about}: more is better."),
    ]
    return [
        plot([means("measured", figures)], {"xaxis": x_axis, "yaxis": NAMES}, caption)
        for figures, x_axis, caption in shown
        if figures
    ]
