"""An audit's rows as tables and sentences: every attack, what each case comes to, and who reads what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.markdown import markdown_table

Row = dict[str, Any]
"""one attack on one case; unknown figures are None"""
AUDIT_HEADINGS = (
    "scheme", "K", "ρ", "RMSE", "KB up", "attack", "knowing", "ratings", "control", "by guessing", "AUC", "95 %",
    "worst tenth", "control", "precision", "recall", "TPR at 1 % FPR",
)  # fmt: skip
VERDICT_HEADINGS = ("knowing", "attack", "AUC", "control", "gain, 95 %", "ratings")
"""of ratings, in brackets the control's"""
LEAST_GAIN = 0.01
"""what is told from the control's area or share of ratings with less is called nothing"""


def table_line(row: Row) -> list[str]:
    """One row as cells."""
    interval = row.get("auc_interval")
    if not applies(row):
        return [*_of_case(row), row["attack"], row.get("knowing") or "–", *["–"] * (len(AUDIT_HEADINGS) - 7)]
    return [
        *_of_case(row),
        row["attack"],
        row.get("knowing") or "–",
        *(percent(_of_ratings(row, name)) for name in ("rating_exact", "rating_exact_control", "rating_floor")),
        _auc(row),
        f"{number(interval[0])}–{number(interval[1])}" if interval else "–",
        *(number(row.get(name)) for name in ("auc_worst_tenth", "auc_control", "precision", "recall")),
        number(row.get("tpr_at_1pct_fpr")),
    ]


def _of_ratings(row: Row, name: str) -> float | None:
    """A figure about ratings; none where all ratings are the same, which everybody guesses."""
    return None if row.get("likes_alone") else row.get(name)


def _of_case(row: Row) -> list[str]:
    """Cells that all rows of one training have."""
    sent = row["bytes_up_per_client_round"]
    return [
        row["scheme"],
        _format(row["local_epochs"], "d"),
        _format(row["pseudo_ratio"], "g"),
        row["note"] if row["rmse"] is None and row["note"] and not row.get("likes_alone") else number(row["rmse"], 4),
        _format(None if sent is None else sent / 1000, ".1f"),
    ]


def applies(row: Row) -> bool:
    """Whether the attack had anything to look at: where not, its row has what is known without any attack."""
    return row.get("applies") is not False


def is_blind(row: Row) -> bool:
    """Whether the attack tells rows apart in noise just as it does here: its area says nothing of what it looked at."""
    return "rows" in (row.get("blind") or ())


def _auc(row: Row) -> str:
    return f"{number(row['auc'])}{' blind' if is_blind(row) else ''}"


def rows_by_case(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one training together, one per attack."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault((row["scheme"], row["pseudo_ratio"], row["local_epochs"]), []).append(row)
    return list(found.values())


def case_name(row: Row) -> str:
    """Scheme, ρ and K."""
    return f"{row['scheme']}, ρ={_format(row['pseudo_ratio'], 'g')}, K={_format(row['local_epochs'], 'd')}"


def auc(row: Row) -> float:
    """How well rated items are told from others; 1 in audits of before 2026-11-16 where there were no pseudo rows."""
    return 1.0 if row["auc"] is None else float(row["auc"])


def strongest(case: Sequence[Row], knowing: str = "nothing") -> Row:
    """The attack that gains most over its control among those that assume so much, or of all if there are none.

    Blind attacks come last.
    """
    rows = [row for row in case if applies(row) and known_to(row) == knowing] or case
    return max(rows, key=lambda row: (not is_blind(row), auc(row) - (row.get("auc_control") or 0.5), auc(row)))


def known_to(row: Row) -> str:
    """What the attacker is assumed to know besides what the server sees."""
    return row.get("knowing") or "nothing"


def summary(rows: Sequence[Row]) -> list[str]:
    """For each case, its strongest attacks in one sentence."""
    return [f"{case_name(case[0])}: {_verdict(case)}" for case in rows_by_case(rows)]


def _verdict(case: Sequence[Row]) -> str:
    note = case[0]["note"] or ""
    if note and all(row["rmse"] is None and not row.get("likes_alone") for row in case):
        return str(note)
    words = []
    for knowing in dict.fromkeys(known_to(row) for row in case if applies(row)):
        some = [row for row in case if applies(row) and known_to(row) == knowing]
        known = [row for row in some if _of_ratings(row, "rating_exact") is not None]
        assumed = "" if knowing == "nothing" else f"knowing {knowing}, "
        if known:
            best = max(known, key=lambda row: float(row["rating_exact"]))
            words.append(
                f"{assumed}{best['attack']} reads {percent(best['rating_exact'])} of the ratings"
                f" (control {percent(best.get('rating_exact_control'))})"
            )
        best = strongest(some, knowing)
        words.append(
            f"{assumed}{best['attack']} tells rated items from {best.get('against') or 'pseudo'} ones with AUC"
            f" {_auc(best)}, worst tenth {number(best.get('auc_worst_tenth'))}"
            f" (control {number(best.get('auc_control'))})"
        )
    return "; ".join([*words, *([note] if note else [])])


def frontier_table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: scheme, K, ρ, RMSE and KB against the ratings read and each attack's AUC.

    Then the worst tenth of users and the control of the strongest attack that assumes nothing of the attacker.
    """
    attacks = list(dict.fromkeys(row["attack"] for row in rows))
    cells = []
    for case in rows_by_case(rows):
        read = [row for row in case if row["rating_exact"] is not None and applies(row) and known_to(row) == "nothing"]
        most = max(read, key=lambda row: float(row["rating_exact"]), default={})
        told = {row["attack"]: _auc(row) if applies(row) else "–" for row in case}
        best = strongest(case)
        cells.append(
            [
                *_of_case(case[0]),
                *(percent(most.get(name)) for name in ("rating_exact", "rating_exact_control")),
                *(told.get(name, "–") for name in attacks),
                *(number(best.get(name)) for name in ("auc_worst_tenth", "auc_control")),
            ]
        )
    return [*_OF_CASE, "ratings read", "control", *attacks, "worst tenth", "control"], cells


_OF_CASE = ("scheme", "K", "ρ", "RMSE", "KB up")


def to_markdown(rows: Sequence[Row]) -> str:
    """The privacy–accuracy frontier for a document."""
    return markdown_table(*frontier_table(rows))


def number(value: float | None, digits: int = 3) -> str:
    """Without the leading zero; a dash where unknown."""
    return _format(value, f".{digits}f").removeprefix("0")


def percent(value: float | None) -> str:
    """A share in per cent; a dash where unknown."""
    return "–" if value is None else f"{100.0 * value:.1f} %"


def _format(value: float | None, spec: str) -> str:
    return "–" if value is None else f"{value:{spec}}"


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
