"""The page: sections in the paper's order, style, script and drawing library in one file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.provenance import commit
from fedrecplus.report.ablations import ablation_sections
from fedrecplus.report.audits import audit_section
from fedrecplus.report.curves import curves_section
from fedrecplus.report.elements import Section, text
from fedrecplus.report.heterogeneity import heterogeneity_section
from fedrecplus.report.inputs import Found, kind_of, of_kind
from fedrecplus.report.plotly_js import plotly_js
from fedrecplus.report.results_table import results_section
from fedrecplus.report.runs import runs_section
from fedrecplus.report.theory import theory_section


def page_of(contents: Sequence[dict[str, Any]], title: str = "fedrecplus", command: str = "") -> str:
    """A page of JSON contents, each recognised by what it holds."""
    found = [Found(kind, content, "what was found") for content in contents if (kind := kind_of(content))]
    return page(found, title, command)


def page(found: Sequence[Found], title: str, command: str) -> str:
    """The whole page as text."""
    for each in found:
        _check(each)
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
    """Everything that was found, in the paper's order, each under a name of its own."""
    comparisons, runs = of_kind(found, "comparison"), of_kind(found, "run")
    parts = [
        *([results_section(comparisons)] if comparisons else []),
        *(section for content in of_kind(found, "ablation") for section in ablation_sections(content)),
        *(heterogeneity_section(content) for content in of_kind(found, "heterogeneity")),
        *(theory_section(content) for content in of_kind(found, "theory")),
        runs_section(runs, comparisons),
        curves_section(runs),
        *(audit_section(content) for content in of_kind(found, "audit")),
    ]
    sections = [part for part in parts if part]
    names = [section.name for section in sections]
    return [
        replace(section, name=f"{section.name}-{names[: place + 1].count(section.name)}")
        if names.count(section.name) > 1
        else section
        for place, section in enumerate(sections)
    ]


def _check(found: Found) -> None:
    """Refuse by name what is damaged or was written by a version with other fields."""
    try:
        sections_of([found])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        wrong = f"without {error}" if isinstance(error, KeyError) else f"that can't be read: {error}"
        raise UserError(
            f"{found.source}: {found.kind} {wrong}", "it is damaged or of another version: make it again"
        ) from None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
