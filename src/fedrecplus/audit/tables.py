"""An audit's rows as tables and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.markdown import markdown_table

Row = dict[str, Any]
"""one attack on one case; unknown figures are None"""
HEADINGS = (
    "scheme", "K", "ρ", "RMSE", "KB up", "attack", "ratings", "by guessing", "AUC", "95 %", "worst tenth", "precision",
    "recall", "TPR at 1 % FPR",
)  # fmt: skip


def line(row: Row) -> list[str]:
    """One row as cells."""
    interval, sent = row.get("auc_interval"), row["bytes_up_per_client_round"]
    return [
        row["scheme"],
        _format(row["local_epochs"], "d"),
        _format(row["pseudo_ratio"], "g"),
        row["note"] if row["rmse"] is None and row["note"] else number(row["rmse"], 4),
        _format(None if sent is None else sent / 1000, ".1f"),
        row["attack"],
        percent(row["rating_exact"]),
        percent(row["rating_floor"]) if row["rating_exact"] is not None else "–",
        number(row["auc"]),
        f"{number(interval[0])}–{number(interval[1])}" if interval else "–",
        *(number(row.get(name)) for name in ("auc_worst_tenth", "precision", "recall", "tpr_at_1pct_fpr")),
    ]


def cases(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one training together, one per attack."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["scheme"], row["pseudo_ratio"], row["local_epochs"]), []).append(row)
    return list(found.values())


def case_name(row: Row) -> str:
    """Scheme, ρ and K."""
    return f"{row['scheme']}, ρ={_format(row['pseudo_ratio'], 'g')}, K={_format(row['local_epochs'], 'd')}"


def auc(row: Row) -> float:
    """How well rated rows are told from pseudo rows; 1 where there are no pseudo rows, so that nothing is hidden."""
    return 1.0 if row["auc"] is None else float(row["auc"])


def strongest(case: Sequence[Row]) -> Row:
    """The attack with the highest AUC."""
    return max(case, key=auc)


def summary(rows: Sequence[Row]) -> list[str]:
    """For each case, its strongest attacks in one sentence."""
    return [f"{case_name(case[0])}: {_verdict(case)}" for case in cases(rows)]


def _verdict(case: Sequence[Row]) -> str:
    note = case[0]["note"] or ""
    if note and (all(row["rmse"] is None for row in case) or case[0].get("uploads") == 0):
        return str(note)
    words = []
    if read := [row for row in case if row["rating_exact"] is not None]:
        best = max(read, key=lambda row: float(row["rating_exact"]))
        guessed = "" if best["rating_floor"] is None else f" ({percent(best['rating_floor'])} by guessing)"
        words.append(f"{best['attack']} reads {percent(best['rating_exact'])} of the ratings{guessed}")
    if told := [row for row in case if row["auc"] is not None]:
        best = strongest(told)
        words.append(f"{best['attack']} tells rated rows from pseudo rows with AUC {number(best['auc'])}")
    else:
        words.append("every uploaded row is a rated item")
    return "; ".join([*words, *([note] if note else [])])


def frontier_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: scheme, K, ρ, RMSE and KB against the ratings read and each attack's AUC."""
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    cells = []
    for case in cases(rows):
        read = [row["rating_exact"] for row in case if row["rating_exact"] is not None]
        told = {row["attack"]: number(row["auc"]) for row in case}
        cells.append([*line(case[0])[:5], percent(max(read, default=None)), *(told.get(name, "–") for name in attacks)])
    return ["scheme", "K", "ρ", "RMSE", "KB up", "ratings read", *attacks], cells


def to_markdown(rows: Sequence[Row]) -> str:
    """The privacy–accuracy frontier for a document."""
    return markdown_table(*frontier_table(rows))


def strongest_to_markdown(rows: Sequence[Row]) -> str:
    """For a document: the strongest attack on each case, with its interval and its worst tenth of users."""
    told = [line(strongest(case)) for case in cases([row for row in rows if row["auc"] is not None])]
    headings = ["scheme", "K", "strongest", "AUC", "95 %", "worst tenth", "TPR at 1 % FPR"]
    return markdown_table(headings, [[best[0], best[1], best[5], *best[8:11], best[13]] for best in told])


def number(value: float | None, digits: int = 3) -> str:
    """Without the leading zero; a dash where unknown."""
    return _format(value, f".{digits}f").removeprefix("0")


def percent(value: float | None) -> str:
    """A share in per cent; a dash where unknown."""
    return "–" if value is None else f"{100.0 * value:.1f} %"


def _format(value: float | None, spec: str) -> str:
    return "–" if value is None else f"{value:{spec}}"
