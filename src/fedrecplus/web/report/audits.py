"""One audit: every attack on every case, and how much of the ratings each reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fedrecplus import audit
from fedrecplus.web.report.elements import Section, axis, bullets, paragraph, plot, table, trace
from fedrecplus.web.report.inputs import made


def audit_section(content: dict[str, Any]) -> Section:
    """Scheme × ρ × K against error, bytes and every attack's AUC."""
    rows: list[audit.Row] = [defaultdict(lambda: None, row) for row in content["rows"]]
    watched = [f"{content[name]} {name}" for name in ("users", "rounds") if name in content]
    about = f"{content.get('dataset', 'Data not named')}" + (f", {' and '.join(watched)} watched." if watched else ".")
    caption = (
        "KB up per client and round; the most ratings that an attack reads exactly, and its control; the AUC of each "
        "attack: 0.5 is chance, 1 is certainty, – where it has nothing to look at."
    )
    parts = [
        paragraph(
            about,
            "The control is the same attack without the watched person's uploads.",
            "An attack that says the same of noise is blind: its figure is of public things.",
            "Attacks that assume the attacker to know more than a server does are named in the sentences below.",
        ),
        table(*audit.frontier_table(rows), caption),
        _curves(rows),
        _ratings_read(rows),
        bullets([f"{sentence}." for sentence in audit.summary(rows)]),
        made(content.get("made"), {f"config of {name}": text for name, text in content.get("configs", {}).items()}),
    ]
    return Section("audit", "Privacy audit", parts)


def _curves(rows: Sequence[audit.Row]) -> str:
    """Found rows over false alarms, both logarithmic: what the strongest attacks know for certain shows at the left."""
    traces = []
    for case in audit.rows_by_case(rows):
        for knowing in dict.fromkeys(audit.known_to(row) for row in case if audit.applies(row)):
            best = audit.strongest(case, knowing)
            if best["roc"] and not audit.is_blind(best):
                name = f"{audit.case_name(best)}, {best['attack']}"
                traces.append(trace(name, audit.ROC, _seen(best["roc"])))
                traces.append(trace(f"{name}, control", audit.ROC, _seen(best["roc_control"]), line={"dash": "dot"}))
    if not traces:
        return ""
    layout = {"xaxis": axis("other rows named", type="log"), "yaxis": axis("rated rows found", type="log")}
    return plot(traces, layout, "Rated rows that are found, over other rows that are named by mistake: both shares.")


def _seen(shares: Sequence[float | None]) -> list[float | None]:
    """Shares above 0: a logarithmic axis has no place for others."""
    return [share if share and share > 0.0 else None for share in shares]


def _ratings_read(rows: Sequence[audit.Row]) -> str:
    """Shares of ratings that attacks read exactly, beside what guessing the commonest gives."""
    attacks = list(dict.fromkeys(row["attack"] for row in rows if row["rating_exact"] is not None))
    if not attacks:
        return ""
    cells = []
    for case in audit.rows_by_case(rows):
        read = {row["attack"]: audit.percent(row["rating_exact"]) for row in case}
        floor = next((row["rating_floor"] for row in case if row["rating_floor"] is not None), None)
        cells.append([audit.case_name(case[0]), audit.percent(floor), *(read.get(name, "–") for name in attacks)])
    return table(["case", "by guessing", *attacks], cells, "Ratings that an attack reads exactly.")
