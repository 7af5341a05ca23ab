"""The page: sections, style, script and plotly.js in one file."""

from __future__ import annotations

import base64
import functools
import gzip
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.provenance import commit
from fedrecplus.web.report.ablations import ablation_sections
from fedrecplus.web.report.audits import audit_section
from fedrecplus.web.report.elements import Section, text, unique
from fedrecplus.web.report.families import family_sections
from fedrecplus.web.report.frontier import frontier_section
from fedrecplus.web.report.heterogeneity import heterogeneity_section
from fedrecplus.web.report.inputs import Found, kind_of
from fedrecplus.web.report.results import results_section
from fedrecplus.web.report.runs import convergence_section, runs_section
from fedrecplus.web.report.theory import theory_section
from fedrecplus.web.report.verdicts import verdicts_section


def page_of(contents: Sequence[dict[str, Any]], title: str = "fedrecplus", command: str = "") -> str:
    """A page of JSON contents, each recognised by what it holds."""
    inputs = [Found(kind, content, "what was found") for content in contents if (kind := kind_of(content))]
    return page(inputs, title, command)


def page(inputs: Sequence[Found], title: str, command: str) -> str:
    """The whole page as text."""
    sections = _checked_sections(inputs)
    links = "".join(f'<li><a href="#{text(each.name)}">{text(each.title)}</a></li>' for each in sections)
    here = files(__package__)
    style, script = (here.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    facts = [f"fedrecplus {__version__}", f"commit {commit()}" if commit() else "no git checkout", now]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{style}</style></head>\n<body><header><h1>{text(title)}</h1>"
        f'<p class="facts">Page made by {text(", ".join(facts))}'
        f"{f' with <code>{text(command)}</code>' if command else ''}. "
        "Numbers say below where they come from; sentences about them are made from them.</p>"
        f"<nav><ul>{links}</ul></nav></header>\n<main>{''.join(each.html() for each in sections)}</main>\n"
        f'<script type="text/plain" id="plotly">{plotly_js()}</script>\n<script>{script}</script></body></html>\n'
    )


def sections_of(inputs: Sequence[Found]) -> list[Section]:
    """Everything that was found, in the paper's order, each under a name of its own."""

    def all_of(kind: str) -> list[dict[str, Any]]:
        return [each.content for each in inputs if each.kind == kind]

    comparisons, runs = all_of("comparison"), all_of("run")
    sections = [
        verdicts_section(inputs),
        *family_sections(all_of("family")),
        results_section(comparisons) if comparisons else None,
        *(section for content in all_of("ablation") for section in ablation_sections(content)),
        *map(heterogeneity_section, all_of("heterogeneity")),
        *map(theory_section, all_of("theory")),
        runs_section(runs, comparisons),
        convergence_section(runs),
        frontier_section(comparisons, all_of("audit"), runs),
        *map(audit_section, all_of("audit")),
    ]
    present = [section for section in sections if section]
    names = unique([section.name for section in present], "{}-{}")
    return [replace(section, name=name) for section, name in zip(present, names, strict=True)]


def _checked_sections(inputs: Sequence[Found]) -> list[Section]:
    """The sections; what is damaged, or was written by a version with other fields, is refused by its name."""
    try:
        return sections_of(inputs)
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if len(inputs) > 1:
            for each in inputs:
                _checked_sections([each])
            raise
        wrong = f"without {error}" if isinstance(error, KeyError) else f"that can't be read: {error}"
        raise UserError(
            f"{inputs[0].source}: {inputs[0].kind} {wrong}", "it is damaged or of another version: make it again"
        ) from None


@functools.cache
def plotly_js() -> str:
    """plotly.js for Cartesian plots, compressed, as base64: ``page.js`` unpacks it, and the page stays below 1 MB."""
    script = files(__package__).joinpath("plotly-cartesian.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, mtime=0)).decode()
