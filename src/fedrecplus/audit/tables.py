"""The audit in words and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.markdown import markdown_table

HEADINGS = (
    "scheme", "K", "ρ", "RMSE", "KB up", "attack", "ratings", "floor", "AUC", "95 %", "worst tenth", "precision",
    "recall", "TPR at 1 % FPR",
)  # fmt: skip


def line(row: dict[str, Any]) -> list[str]:
    """One row as cells."""
    interval = row.get("auc_interval")
    return [
        row["scheme"],
        str(row["local_epochs"]),
        f"{row['pseudo_ratio']:g}",
        row["note"] if row["rmse"] is None and row["note"] else _number(row["rmse"], 4),
        "–" if row["bytes_up_per_client_round"] is None else f"{row['bytes_up_per_client_round'] / 1000:.1f}",
        row["attack"],
        _percent(row["rating_exact"]),
        _percent(row["rating_floor"]) if row["rating_exact"] is not None else "–",
        _number(row["auc"]),
        f"{_number(interval[0])}–{_number(interval[1])}" if interval else "–",
        _number(row.get("auc_worst_tenth")),
        _number(row["precision"]),
        _number(row["recall"]),
        _number(row["tpr_at_1pct_fpr"]),
    ]


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """For each scheme and K, its strongest attack in one sentence."""
    texts = []
    for scheme, epochs in dict.fromkeys((row["scheme"], row["local_epochs"]) for row in rows):
        own = [row for row in rows if (row["scheme"], row["local_epochs"]) == (scheme, epochs)]
        texts.append(f"{scheme}, K={epochs}: {_verdict(own)}")
    return texts


def _verdict(rows: Sequence[dict[str, Any]]) -> str:
    if all(row["rmse"] is None for row in rows) and rows[0]["note"]:
        return str(rows[0]["note"])
    read = [row for row in rows if row["rating_exact"] is not None]
    told = [row for row in rows if row["auc"] is not None]
    words = []
    if read:
        best = max(read, key=lambda row: float(row["rating_exact"]))
        words.append(f"{best['attack']} reads {_percent(best['rating_exact'])} of the ratings")
    if told:
        best = max(told, key=lambda row: float(row["auc"]))
        words.append(f"{best['attack']} tells rated rows from pseudo rows with AUC {_number(best['auc'])}")
    else:
        words.append("every uploaded row is a rated item")
    return "; ".join(words)


def to_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """The table for a document: scheme, K, ρ, RMSE and KB against each attack's AUC, and the ratings read."""
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    headings = ["scheme", "K", "ρ", "RMSE", "KB up", "ratings read", *attacks]
    cells = []
    for scheme, epochs in dict.fromkeys((row["scheme"], row["local_epochs"]) for row in rows):
        own = {row["attack"]: row for row in rows if (row["scheme"], row["local_epochs"]) == (scheme, epochs)}
        first = line(next(iter(own.values())))
        read = [row["rating_exact"] for row in own.values() if row["rating_exact"] is not None]
        told = [_number(own[name]["auc"]) if name in own else "–" for name in attacks]
        cells.append([*first[:5], _percent(max(read)) if read else "–", *told])
    return markdown_table(headings, cells)


def strongest_to_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """For a document: the strongest attack on each scheme and K, with its interval and its worst tenth of users."""
    headings = ["scheme", "K", "strongest", "AUC", "95 %", "worst tenth", "TPR at 1 % FPR"]
    cells = []
    for scheme, epochs in dict.fromkeys((row["scheme"], row["local_epochs"]) for row in rows):
        own = [row for row in rows if (row["scheme"], row["local_epochs"]) == (scheme, epochs)]
        told = [row for row in own if row["auc"] is not None]
        if told:
            best = line(max(told, key=lambda row: float(row["auc"])))
            cells.append([best[0], best[1], best[5], *best[8:11], best[13]])
    return markdown_table(headings, cells)


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}".removeprefix("0")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100.0 * value:.1f} %"
