"""What an audit comes to: one sentence for each case, and who reads what, in 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from fedrecplus.audit.tables import Row, applies, auc, case_name, is_blind, known_to, number, percent, strongest

VERDICT_HEADINGS = ("knowing", "attack", "AUC", "control", "gain, 95 %", "ratings")
"""of ratings, in brackets the control's"""
LEAST_GAIN = 0.01
"""what is told from the control's area or share of ratings with less is called nothing"""


def verdict_sentence(case: Sequence[Row]) -> str:
    """Whether a server that has nothing besides what it sees learns anything, and what; then who knows more."""
    name, note = case_name(case[0]), case[0]["note"] or ""
    if all(row["rmse"] is None and not row.get("likes_alone") for row in case) and note:
        return f"{name}: {note}."
    rows = [row for row in case if applies(row)]
    known = [one for one in dict.fromkeys(map(known_to, rows)) if one != "nothing"]
    more = [f"who knows {one}: {_gained(rows, one)}" for one in known]
    return f"{name}: a server {_learns(rows)}{'; ' if more else ''}{', '.join(more)}."


def _learns(rows: Sequence[Row]) -> str:
    own = [row for row in rows if known_to(row) == "nothing"]
    seeing = [row for row in own if not is_blind(row)]
    blind = f" ({len(own) - len(seeing)} of {len(own)} attacks are blind here)" if len(own) > len(seeing) else ""
    if not seeing:
        return f"was attacked by nothing that reads{blind}"
    reader = max(seeing, key=lambda row: _end(row, "rating_gain", 0))
    finder = max(seeing, key=lambda row: _end(row, "gain", 0))
    learned = []
    if _end(reader, "rating_gain", 0) > LEAST_GAIN and not reader.get("likes_alone"):
        learned.append(f"reads {percent(reader['rating_exact'])} of the ratings ({reader['attack']})")
    if _end(finder, "gain", 0) > LEAST_GAIN:
        learned.append(f"tells rated items with AUC {number(auc(finder))} ({finder['attack']})")
    if learned:
        return " and ".join(learned) + blind
    made = "1 attack" if len(seeing) == 1 else f"{len(seeing)} attacks"
    return f"learns nothing that {made} could show: AUC at most {_most(seeing)} above control{blind}"


def _gained(rows: Sequence[Row], knowing: str) -> str:
    best = strongest([row for row in rows if known_to(row) == knowing], knowing)
    return f"AUC {number(auc(best))} against {number(best.get('auc_control'))}"


def _most(rows: Sequence[Row]) -> str:
    return number(max(max(_end(row, "gain", 1), 0.0) for row in rows))


def _end(row: Row, name: str, end: int) -> float:
    interval = row.get(f"{name}_interval")
    return float(interval[end]) if interval else 0.0


def who_reads_what(case: Sequence[Row]) -> list[list[str]]:
    """For each thing an attacker may know, its strongest attack against its control; blind ones say so."""
    cells = []
    case = [row for row in case if row["auc"] is not None]  # a training that diverged has no figures
    for knowing in dict.fromkeys(known_to(row) for row in case if applies(row)):
        best, rows = strongest(case, knowing), [row for row in case if applies(row) and known_to(row) == knowing]
        low, high = (number(_end(best, "gain", end)) for end in (0, 1))
        area = "blind" if is_blind(best) else number(auc(best))
        cells.append([knowing, best["attack"], area, number(best.get("auc_control")), f"{low}…{high}", _read(rows)])
    return cells


def _read(rows: Sequence[Row]) -> str:
    """By the attack that reads most ratings, which may be another."""
    row = max(rows, key=lambda row: row.get("rating_exact") or 0.0)
    if row.get("likes_alone") or row.get("rating_exact") is None:
        return "–"
    return f"{100 * row['rating_exact']:.0f} % ({100 * (row.get('rating_exact_control') or 0.0):.0f})"
