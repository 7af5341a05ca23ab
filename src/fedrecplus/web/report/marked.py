"""Tables of a document, renewed between its marks: ``<!-- NAME -->`` before, ``<!-- end -->`` after.

A name is a kind of study and what it is of: ``ideas mf``, ``family ml-100k mf fixed``, ``figure ml-100k``,
``course ml-100k``, ``heterogeneity ml-100k``, ``theory NAME``; with ``says`` before it, the study's verdict in words.
What wasn't run keeps its text; the ideas keep the columns of data sets that weren't.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fedrecplus.experiments import FoldMean, Table, family, heterogeneity
from fedrecplus.experiments.theory import conditions_table, horizons_table, lemmas_table, weights_in_words
from fedrecplus.markdown import markdown_table
from fedrecplus.web.report.elements import PAPER_PRESET
from fedrecplus.web.report.inputs import Found
from fedrecplus.web.report.verdicts import said

_MARKED = re.compile(r"(<!-- (?P<name>[^\n]+?) -->\n)(?P<text>.*?)(<!-- end -->)", re.S)


def renewed(text: str, inputs: Sequence[Found]) -> str:
    """The document with new tables where the studies have any."""
    blocks, ideas = dict(_blocks(inputs)), dict(_ideas(inputs))

    def renew(mark: re.Match[str]) -> str:
        name, own = mark["name"], mark["text"]
        return f"{mark[1]}{_with_columns(own, *ideas[name]) if name in ideas else blocks.get(name, own)}{mark[4]}"

    return _MARKED.sub(renew, text)


def _with_columns(old: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The new table, and beside its columns those of the old one that it hasn't, where both are about the same rows."""
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in old.splitlines() if line[:1] == "|"]
    alike = [row[0] for row in cells[2:]] == [row[0] for row in rows]
    columns = {own[0]: own[1:] for own in zip(cells[0], *cells[2:], strict=True)} if alike and cells else {}
    columns |= {own[0]: own[1:] for own in zip(head, *rows, strict=True)}
    return markdown_table([*columns], [list(row) for row in zip(*columns.values(), strict=True)])


def _blocks(inputs: Sequence[Found]) -> Iterator[tuple[str, str]]:
    """Every table that can be made, by name."""
    for kind, content in ((each.kind, each.content) for each in inputs):
        for name, table in _TABLES[kind](content) if kind in _TABLES else ():
            yield name, f"{table}{_origin(content)}"
            yield f"says {name}", "".join(f"{line}\n" for line in said(kind, content))


def _ideas(inputs: Sequence[Found]) -> Iterator[tuple[str, Table]]:
    """What the paper's ideas bring, by model."""
    families = [each.content for each in inputs if each.kind == "family" and each.content["claims"]]
    for model in dict.fromkeys(content["model"] for content in families):
        own = sorted((content for content in families if content["model"] == model), key=family.tables.table_column)
        yield f"ideas {model}", family.tables.ideas_table(own)


def _family(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    settings = "tuned" if content["tuned"] else "fixed"
    yield f"family {content['dataset']} {content['model']} {settings}", family.tables.to_markdown(content)


def _figure(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for study in content["studies"]:
        if (study["study"], study["algorithm"]) == ("pseudo-items", PAPER_PRESET):
            errors = [FoldMean(**cell["rmse"]) for cell in study["cells"]]
            ratios = [str(cell["settings"]["pseudo_items.ratio"]) for cell in study["cells"]]
            rows = [["RMSE", *map(str, errors)]]
            yield f"figure {study['dataset']}", markdown_table(["pseudo items per rated item", *ratios], rows)


def _heterogeneity(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield f"heterogeneity {content['dataset']}", heterogeneity.tables.table_and_findings(content, "RMSE")


def _theory(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    tables = [markdown_table(*conditions_table(content)), markdown_table(*lemmas_table(content["lemmas"]))]
    lines = [content["says"][-1], weights_in_words(content)]
    if "corollary" in content:
        tables.append(markdown_table(*horizons_table(content["corollary"])))
        lines += content["corollary"]["says"]
    yield f"theory {content['algorithm']}", "\n".join([*tables, *(f"{line}\n" for line in lines)])


def _course(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """How a run went on after its best round."""
    result, errors = content["result"], {line["round"]: line["rmse"] for line in content["metrics"] if "rmse" in line}
    if result["algorithm"] == PAPER_PRESET and errors:
        best, last = min(errors, key=errors.__getitem__), max(errors)
        yield (
            f"course {result['dataset']}",
            f"`{PAPER_PRESET}`, fold {result['fold']} of {result['dataset']}, has its lowest RMSE, {errors[best]:.4f}, "
            f"in round {best} of those that were tested, and ends after {last} rounds with {errors[last]:.4f}.\n",
        )


_TABLES: dict[str, Callable[[dict[str, Any]], Iterator[tuple[str, str]]]] = {
    "family": _family,
    "ablation": _figure,
    "heterogeneity": _heterogeneity,
    "theory": _theory,
    "run": _course,
}


def _origin(content: dict[str, Any]) -> str:
    """The command and the commit, as the study itself recorded them."""
    made = content.get("made") or content.get("result", {}).get("made")
    if not made:
        return ""
    commit = f"commit {made['commit']}" if made.get("commit") else "no git checkout"
    return f"\n`{made['command']}`, version {made['version']}, {commit}, {made['when'][:10]}.\n"
