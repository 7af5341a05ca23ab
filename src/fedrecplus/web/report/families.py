"""The paper's claims: its family of algorithms under equal settings, and where the gain comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.experiments import fold_mean, published
from fedrecplus.experiments.family import FEDREC, tables
from fedrecplus.web.report.elements import NAMES, Section, bullets, figure_axis, means, paragraph, plot, table, text
from fedrecplus.web.report.inputs import made

_PAPER = "FedRec+ paper"
_SAME = (
    "The same data, folds, model, rounds and seeds; members differ in the parts that their names say. "
    "Fixed: every setting is the same. Tuned: each has the best of the same points, by a validation cut."
)


def family_sections(contents: Sequence[dict[str, Any]]) -> list[Section]:
    """A section per data set, with all runs of the family on it; one more of FedRec's own models, if any was run."""
    sections: list[Section] = []
    ordered = sorted(contents, key=tables.table_column)
    for name in dict.fromkeys(content["dataset"] for content in ordered):
        own = [content for content in ordered if content["dataset"] == name]
        paper, fedrec = ([content for content in own if bool(content["claims"]) == claims] for claims in (True, False))
        if paper:
            sections.append(_section(name, paper))
        if fedrec:
            parts = [paragraph(_SAME), *(part for content in fedrec for part in _tables(content))]
            sections.append(Section("fedrec", f"FedRec's two models on {name}", parts))
    return sections


def _section(name: str, contents: Sequence[dict[str, Any]]) -> Section:
    parts = [
        paragraph(
            _SAME,
            "p: Wilcoxon's signed-rank test over clients, with Holm's correction for all claims of a table.",
        ),
        table(*tables.ideas_table(contents), "What the paper's ideas bring: changes of RMSE, negative is better."),
        bullets(_printed(name)),
        _gain(contents),
        *(part for content in contents for part in _tables(content)),
    ]
    return Section("claims", f"The paper's claims on {name}", parts)


def _tables(content: dict[str, Any]) -> list[str]:
    """One run of the family."""
    settings = {member["name"]: "\n".join(member["settings"]) for member in content["members"]}
    return [
        f"<h3>{text(tables.title(content))}</h3>",
        table(*tables.errors_table(content)),
        table(*tables.claims_table(content)) if content["claims"] else "",
        made(content.get("made"), {"what all members share": content["config"], **settings}),
    ]


def _printed(name: str) -> list[str]:
    """What the paper prints, beside which ours stands."""
    paper = [row for row in published(name) if row.source == _PAPER]
    if len(paper) < 2:
        return []
    return [
        f"The paper prints {paper[1].rmse:.4f} for FedRec+ and {paper[0].rmse:.4f} for FedRec, "
        f"a change of {paper[1].rmse - paper[0].rmse:+.4f}; it doesn't say by which settings."
    ]


def _gain(contents: Sequence[dict[str, Any]]) -> str:
    """Each member's RMSE less FedRec's, over folds."""
    traces = []
    for content in contents:
        errors = {member["name"]: [row["rmse"] for row in member["rows"]] for member in content["members"]}
        names = [name for name in errors if name != FEDREC and FEDREC in errors]
        changes = {n: fold_mean([a - b for a, b in zip(errors[n], errors[FEDREC], strict=True)]) for n in names}
        traces.append(means(tables.table_column(content), changes))
    layout = {"xaxis": figure_axis(f"RMSE less that of {FEDREC}", zeroline=True), "yaxis": NAMES}
    return plot(traces, layout, f"Where the gain comes from: RMSE less that of {FEDREC}, mean ± sd over folds.")
