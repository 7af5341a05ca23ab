"""The page: sections in the paper's order, style, script and drawing library in one file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from fedrecplus import __version__
from fedrecplus.provenance import commit
from fedrecplus.report.ablations import ablation_sections
from fedrecplus.report.audits import audit_section
from fedrecplus.report.curves import curves_section
from fedrecplus.report.elements import Section, text
from fedrecplus.report.heterogeneity import heterogeneity_section
from fedrecplus.report.inputs import Found, kind_of, of_kind
from fedrecplus.report.plotly_js import plotly_js
from fedrecplus.report.results_table import results_section
from fedrecplus.report.theory import theory_section


def page_of(contents: Sequence[dict[str, Any]], title: str = "fedrecplus", command: str = "") -> str:
    """A page of JSON contents, each recognised by what it holds."""
    found = [Found(kind, content) for content in contents if (kind := kind_of(content))]
    return page(found, title, command)


def page(found: Sequence[Found], title: str, command: str) -> str:
    """The whole page as text."""
    sections = sections_of(found)
    links = "".join(f'<li><a href="#{text(each.name)}">{text(each.title)}</a></li>' for each in sections)
    here = files(__package__)
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    facts = [f"fedrecplus {__version__}", f"commit {commit()}" if commit() else "no git checkout", _now()]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n<body><header><h1>{text(title)}</h1>"
        f'<p class="facts">Page made by {text(", ".join(facts))}'
        f"{f' with <code>{text(command)}</code>' if command else ''}. "
        "Numbers say below where they come from; sentences about them are made from them.</p>"
        f"<nav><ul>{links}</ul></nav></header>\n<main>{''.join(each.html() for each in sections)}</main>\n"
        f"<script>{plotly_js()}</script>\n<script>{script}</script></body></html>\n"
    )


def sections_of(found: Sequence[Found]) -> list[Section]:
    """Everything that was found, in the paper's order."""
    sections: list[Section] = []
    comparisons = of_kind(found, "comparison")
    if comparisons:
        sections.append(results_section(comparisons))
    for content in of_kind(found, "ablation"):
        sections += ablation_sections(content)
    sections += [heterogeneity_section(content) for content in of_kind(found, "heterogeneity")]
    sections += [theory_section(content, number) for number, content in enumerate(of_kind(found, "theory"), start=1)]
    curves = curves_section(of_kind(found, "run"))
    sections += [curves] if curves else []
    return sections + [audit_section(content) for content in of_kind(found, "audit")]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
