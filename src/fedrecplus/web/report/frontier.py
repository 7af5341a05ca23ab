"""The privacy–accuracy frontier: error, lists, bytes and seconds of every case against what attacks make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fedrecplus.audit import ORDER, number, percent
from fedrecplus.markdown import markdown_table
from fedrecplus.web.report.cases import Attacked, Case, Content, cases_of
from fedrecplus.web.report.elements import Section, axis, figure_axis, heatmap, paragraph, plot, table, text, trace

_HEADINGS = (
    "algorithm", "channel, rows", "protection", "RMSE", "NDCG@10", "rounds", "KB up per client", "seconds per round",
    "ratings read", "strongest attack", "AUC", "worst tenth",
)  # fmt: skip
_CHANCE = 0.5
_GAP = 0.04
"""between two panels, as a share of the width"""
_LINE = 26
"""pixels of a case in the figure"""
_LEAST_WIDTH = 760
"""pixels that four panels need"""
_GAINS_WIDTH = 1040
"""pixels in which every attack's column has room for its number"""
_FULL_COLOUR = 0.5
"""of AUC over its control"""
_GUARANTEES = ("none", "assumed", "computational", "ε")
"""colours of the figure, in this order"""


def frontier_section(
    comparisons: Sequence[Content], audits: Sequence[Content], runs: Sequence[Content] = ()
) -> Section | None:
    """Everything that was both trained and attacked, or is to be compared with that; None without an audit."""
    if not audits:
        return None
    cases = cases_of(comparisons, audits, [run["result"] for run in runs])
    parts = [
        paragraph(
            "A good case is far to the left in every panel: low error, nothing read, attacks no better than their",
            "control, few bytes. The control is the same attack on the same person without that person's uploads:",
            "popularity and public figures tell something about everybody.",
            "“Computational” holds against whoever can't break the cryptography and doesn't collude as its page says;",
            "ε bounds what rounds and statistics tell of a person (“per number”: of one number of an upload),",
            "not measurements; the noise of a run with seeded_noise is taken off by whoever knows its seed.",
        )
    ]
    for dataset in dict.fromkeys(case.dataset for case in cases):
        own = [case for case in cases if case.dataset == dataset]
        parts += [f"<h3>{text(dataset or 'data not named')}</h3>", _panels(own), table(*frontier_table(own), _CAPTION)]
        parts += [_gains(own), _each_attack(own)]
    return Section("frontier", "Privacy–accuracy frontier", parts)


_CAPTION = (
    "KB that a client sends in the whole training; seconds of one round, all clients one after another, – where the "
    "simulation left cryptography out or nothing was compared. In brackets the control. The strongest attack gains "
    "most."
)


def frontier_table(cases: Sequence[Case]) -> tuple[Sequence[str], list[list[str]]]:
    """Headings and cells, a row per case."""
    return _HEADINGS, [_line(case) for case in cases]


def to_markdown(comparisons: Sequence[Content], audits: Sequence[Content], runs: Sequence[Content] = ()) -> str:
    """The table of every data set, and the figures of each attack, for a document."""
    cases, tables = cases_of(comparisons, audits, [run["result"] for run in runs]), []
    for dataset in dict.fromkeys(case.dataset for case in cases):
        own = [case for case in cases if case.dataset == dataset]
        tables += [f"{dataset or 'Data not named'}:\n", markdown_table(*frontier_table(own))]
        if any(case.attacks for case in own):
            tables.append(markdown_table(*_attack_table(own)))
    return "\n".join(tables)


def _line(case: Case) -> list[str]:
    reader, strongest = case.reader, case.strongest
    sent = ", ".join(filter(None, (case.channel, case.rows)))
    costs = [number(case.rmse, 4), number(case.ndcg, 4), *map(_amount, (case.rounds, case.kb, case.seconds))]
    read = "–" if reader is None else _with(percent, reader[1].exact, reader[1].exact_control)
    if strongest is None:
        return [case.algorithm, sent, case.protection, *costs, read, "–", "–", "–"]
    name, attacked = strongest
    cells = [name, _with(number, attacked.auc, attacked.control), number(attacked.worst_tenth)]
    return [case.algorithm, sent, case.protection, *costs, read, *cells]


def _with(shown: Callable[[float | None], str], figure: float | None, control: float | None) -> str:
    return shown(figure) if control is None else f"{shown(figure)} ({shown(control)})"


def _amount(value: float | None) -> str:
    """Three figures, and no more: 0.41, 12.3, 4,120."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _each_attack(cases: Sequence[Case]) -> str:
    if not any(case.attacks for case in cases):
        return ""
    caption = "Each attack's AUC, in brackets its control, and after the slash the worst tenth of users."
    return table(*_attack_table(cases), caption)


def _attack_table(cases: Sequence[Case]) -> tuple[list[str], list[list[str]]]:
    attacks = _attacks(cases)
    rows = [[case.name, *(_figures(case.attacks.get(name)) for name in attacks)] for case in cases if case.attacks]
    return ["case", *attacks], rows


def _attacks(cases: Sequence[Case]) -> list[str]:
    """All attacks on some case, in the audit's order."""
    names = dict.fromkeys(name for case in cases for name in case.attacks)
    return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


def _figures(attacked: Attacked | None) -> str:
    if attacked is None or attacked.auc is None:
        return "–"
    return f"{_with(number, attacked.auc, attacked.control)} / {number(attacked.worst_tenth)}"


def _panels(cases: Sequence[Case]) -> str:
    """A line per case; beside each other its error, the ratings read, the strongest attack, and the bytes."""
    names = [case.name for case in cases]
    traces, drawn = [], [case for case in cases if case.attacks]
    traces += _dots(cases, "x", lambda case: case.rmse)
    traces += _spans(drawn, "x2", lambda case: _read(case, "exact"), lambda case: _read(case, "exact_control"))
    traces += _spans(drawn, "x3", lambda case: _told(case, "auc"), lambda case: _told(case, "control"))
    worst = [(case.name, _told(case, "worst_tenth")) for case in drawn]
    traces.append(_trace("worst tenth of users", "x3", worst, "diamond-open", 9))
    traces += _dots(cases, "x4", lambda case: case.kb)
    width = (1 - 3 * _GAP) / 4
    domains = [[place * (width + _GAP), place * (width + _GAP) + width] for place in range(4)]
    chance = {"type": "line", "xref": "x3", "yref": "paper", "x0": _CHANCE, "x1": _CHANCE, "y0": 0, "y1": 1}
    layout = {
        "xaxis": figure_axis("RMSE", domain=domains[0]),
        "xaxis2": axis("ratings read", domain=domains[1], range=[-0.05, 1.05], tickformat=".0%", hoverformat=".1%"),
        "xaxis3": axis("AUC, strongest attack", domain=domains[2], range=[0.38, 1.04], hoverformat=".3f"),
        "xaxis4": axis("KB up per client", domain=domains[3], type="log", hoverformat=",.0f"),
        "yaxis": {"type": "category", "categoryarray": names[::-1], "categoryorder": "array", "automargin": True},
        "shapes": [{**chance, "line": {"dash": "dot"}}],
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "margin": {"l": 64, "r": 16, "t": 64, "b": 56},
    }
    caption = (
        "Every case in one line. Filled: what was measured, coloured by what protects it. Bar: the control; the line "
        "between the two is what uploads add. Diamond: the worst tenth of users. Dotted: chance."
    )
    return plot(traces, layout, caption, height=150 + _LINE * len(cases), least_width=_LEAST_WIDTH)


Figure = Callable[[Case], float | None]


def _dots(cases: Sequence[Case], place: str, figure: Figure) -> list[dict[str, Any]]:
    """A dot per case, coloured by its guarantee; the first panel brings the legend."""
    traces = []
    for number_, guarantee in enumerate(_GUARANTEES):
        points = [(case.name, figure(case)) for case in cases if case.protection.startswith(guarantee)]
        if points:
            look = _trace(guarantee if guarantee != "ε" else "differential privacy", place, points, "circle", 11)
            look["marker"]["colour"] = number_
            traces.append({**look, "legendgroup": guarantee, "showlegend": place == "x"})
    return traces


def _spans(cases: Sequence[Case], place: str, figure: Figure, control: Figure) -> list[dict[str, Any]]:
    """Dots, a bar at each control, and a line from one to the other."""
    x: list[float | None] = []
    y: list[str | None] = []
    for case in cases:
        ends = (control(case), figure(case))
        if None not in ends:
            x, y = [*x, *ends, None], [*y, case.name, case.name, None]
    look: dict[str, Any] = {"showlegend": False, "hoverinfo": "skip", "line": {"width": 3, "colour": "grid"}}
    line = trace("", x, y, xaxis=place, **look)
    bars = _trace("control", place, [(case.name, control(case)) for case in cases], "line-ns-open", 14)
    return [line, *_dots(cases, place, figure), {**bars, "showlegend": place == "x2"}]


def _trace(name: str, place: str, points: Sequence[tuple[str, float | None]], symbol: str, size: int) -> dict[str, Any]:
    known = [(case, value) for case, value in points if value is not None]
    marker = {"size": size, "symbol": symbol, "colour": "ink"}
    look = trace(name, [value for _, value in known], [case for case, _ in known], "markers", marker=marker)
    return {**look, "xaxis": place, "hovertemplate": f"%{{y}}<br>{name}: %{{x}}<extra></extra>"}


def _read(case: Case, figure: str) -> float | None:
    return None if case.reader is None else getattr(case.reader[1], figure)


def _told(case: Case, figure: str) -> float | None:
    return None if case.strongest is None else getattr(case.strongest[1], figure)


def _gains(cases: Sequence[Case]) -> str:
    """Every attack on every case as colours: AUC over its control."""
    own = [case for case in cases if any(attacked.gain is not None for attacked in case.attacks.values())]
    if not own:
        return ""
    attacks = _attacks(own)
    values = {
        case.name: [attacked.gain if (attacked := case.attacks.get(name)) else None for name in attacks] for case in own
    }
    caption = "What each attack gains over its control (over chance where none was made): no colour, no gain."
    drawn = heatmap(attacks, values, "+.3f", _FULL_COLOUR, "AUC − control")
    return plot(*drawn, caption, height=130 + 30 * len(own), least_width=_GAINS_WIDTH)
