"""What uploads give away, against what they are good for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.report.elements import Section, bullets, paragraph, plot, table
from fedrecplus.report.origins import made

_CHANCE = 0.5
Row = dict[str, Any]


def audit_section(content: dict[str, Any]) -> Section:
    """The frontier: scheme × ρ × K against error, bytes and every attack's success."""
    rows = content["rows"]
    cases = list(_by_case(rows).values())
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    watched = [f"{content[name]} {name}" for name in ("users", "rounds") if name in content]
    parts = [
        paragraph(
            f"{content.get('dataset', 'Data not named')}" + (f", {' and '.join(watched)} watched." if watched else "."),
            "Down and to the left is better: lower error, and attacks that do no better than a coin (0.5).",
            "A scheme without pseudo rows hides nothing: every uploaded row is a rated one, which counts as 1.",
        ),
        _frontier(cases, attacks),
        _auc_table(cases, attacks),
        _read_table(cases, attacks),
        bullets([_worst(case) for case in cases]),
        made(content.get("made"), {f"config of {name}": text for name, text in content.get("configs", {}).items()}),
    ]
    return Section("audit", "What uploads give away", parts)


def _by_case(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows of one training together, one per attack."""
    cases: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["scheme"], row.get("pseudo_ratio"), row.get("local_epochs")), []).append(row)
    return cases


def _name(row: Row) -> str:
    return f"{row['scheme']}, {_setting(row)}"


def _setting(row: Row) -> str:
    ratio, epochs = row.get("pseudo_ratio"), row.get("local_epochs")
    return f"ρ={'–' if ratio is None else f'{ratio:g}'}, K={'–' if epochs is None else epochs}"


def _auc(row: Row) -> float:
    """How well rated rows are told from others; where there are no others, nothing is left to tell."""
    return 1.0 if row.get("auc") is None else float(row["auc"])


def _strongest(case: Sequence[Row]) -> Row:
    return max(case, key=_auc)


def _frontier(cases: Sequence[Sequence[Row]], attacks: Sequence[str]) -> str:
    """A point per case at its strongest attack, named; each attack's points can be added from the legend."""
    known = [case for case in cases if case[0].get("rmse") is not None]
    if not known:
        return ""
    lines = {"strongest attack": [_strongest(case) for case in known]}
    lines |= {name: [row for case in known for row in case if row["attack"] == name] for name in attacks}
    traces = [_points(name, points, first=name == "strongest attack") for name, points in lines.items()]
    layout = {
        "xaxis": {"title": {"text": "RMSE"}},
        "yaxis": {"title": {"text": "AUC: rated rows told from others"}, "range": [0.4, 1.1]},
        "annotations": _labels(lines["strongest attack"]),
        "shapes": [
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": _CHANCE, "y1": _CHANCE, "line": {"dash": "dot"}}
        ],
    }
    return plot(traces, layout, "Accuracy against the strongest attack; the legend adds each attack. Dotted: chance.")


def _labels(rows: Sequence[Row]) -> list[Row]:
    """A name for each scheme at its most accurate case; above and below in turn, since neighbours would overlap."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in sorted(rows, key=lambda row: -row["rmse"]):
        best[row["scheme"], row.get("pseudo_ratio")] = row
    named = sorted(best.values(), key=lambda row: row["rmse"])
    return [
        {"x": row["rmse"], "y": _auc(row), "text": _name(row), "showarrow": False, "yshift": (14, -16)[number % 2]}
        for number, row in enumerate(named)
    ]


def _points(name: str, rows: Sequence[Row], first: bool) -> Row:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [row["rmse"] for row in rows],
        "y": [_auc(row) for row in rows],
        "text": [f"{_name(row)}, {row['attack']}, {_kilobytes(row)} KB up" for row in rows],
        "marker": {"size": 12 if first else 8},
        "visible": True if first else "legendonly",
    }


def _auc_table(cases: Sequence[Sequence[Row]], attacks: Sequence[str]) -> str:
    headings = ["scheme", "ρ, K", "RMSE", "KB up per client and round", *attacks]
    rows = []
    for case in cases:
        found = {row["attack"]: _number(row.get("auc")) for row in case}
        rows.append([*_head(case[0]), *(found.get(name, "") for name in attacks)])
    caption = "AUC of each attack: 0.5 is chance, 1 is certainty; – where there are no pseudo rows to tell apart."
    return table(headings, rows, caption)


def _read_table(cases: Sequence[Sequence[Row]], attacks: Sequence[str]) -> str:
    """Shares of ratings that attacks read exactly, beside what guessing the commonest gives."""
    able = [name for name in attacks if any(r.get("rating_exact") is not None for c in cases for r in _of(c, name))]
    if not able:
        return ""
    rows = []
    for case in cases:
        floors = [row["rating_floor"] for row in case if row.get("rating_floor") is not None]
        shares = [_percent(next((row.get("rating_exact") for row in _of(case, name)), None)) for name in able]
        rows.append([*_head(case[0])[:2], _percent(floors[0] if floors else None), *shares])
    return table(["scheme", "ρ, K", "by guessing", *able], rows, "Ratings that an attack reads exactly.")


def _of(case: Sequence[Row], attack: str) -> list[Row]:
    return [row for row in case if row["attack"] == attack]


def _head(row: Row) -> list[str]:
    why = row.get("note") or "–"
    return [row["scheme"], _setting(row), _number(row.get("rmse"), 4) if row.get("rmse") else why, _kilobytes(row)]


def _worst(case: Sequence[Row]) -> str:
    """The strongest attack on one case, in words made from its numbers."""
    if all(row.get("auc") is None for row in case):
        told = "every uploaded row is a rated item"
    else:
        best = _strongest(case)
        told = f"{best['attack']} tells rated rows from pseudo rows with AUC {_number(best['auc'])}"
    read = [row for row in case if row.get("rating_exact") is not None]
    if read:
        best = max(read, key=lambda row: float(row["rating_exact"]))
        told += f"; {best['attack']} reads {_percent(best['rating_exact'])} of the ratings"
        told += f" ({_percent(best['rating_floor'])} by guessing)" if best.get("rating_floor") is not None else ""
    return f"{_name(case[0])}: {told}."


def _kilobytes(row: Row) -> str:
    sent = row.get("bytes_up_per_client_round")
    return "–" if sent is None else f"{sent / 1000:.1f}"


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
