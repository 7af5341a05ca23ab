"""The pages are for reading: of a length that somebody finishes, with tables that fit, in words of the field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
WRITTEN_BY_COMMANDS = {"settings.md", "commands.md"}
LOG = "log.md"
"""read from the newest entry, not from end to end"""
TABLES = {"audit-results.md", "frontier.md", "paper-heterogeneity.md"}
"""pages of wide tables, mostly written by commands: looked up, not read"""
READ = [page for page in PAGES if page.name not in {LOG, *WRITTEN_BY_COMMANDS}]
MOST_WORDS = 2_500
MOST_COLUMNS = 8
STRANGE = {
    r"says not what": "doesn't say what",
    r"leave \S+ away": "leave … out",
    r"noise meets": "say what noise is added to",
    r"Nobody computes what no": "only what a chosen part needs is computed",
    r"\bmoves of (?:rows|items)\b": "updates",
    r"\bsilo's? word\b": "what a silo says",
    r"\bby lot\b": "at random",
    r"\btakes? (?:them|it|everybody else) off\b": "subtract",
    r"\bunless told\b(?! to)": "by default",
    r"\butili[sz]e": "use",
    r"\bleverag": "use",
    r"\bin order to\b": "to",
}
"""phrase → plainer words"""


def text_of(page: Path) -> str:
    """What is read: without code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def named(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", READ, ids=named)
def test_a_page_can_be_read_to_its_end(page: Path) -> None:
    words = len(page.read_text(encoding="utf-8").split())
    assert words <= MOST_WORDS, f"{page.name} has {words} words: part it, or say it shorter"


@pytest.mark.parametrize("page", [p for p in READ if p.name not in TABLES], ids=named)
def test_tables_have_few_columns(page: Path) -> None:
    rows = [line for line in text_of(page).splitlines() if line.startswith("|")]
    wide = [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) - 1 > MOST_COLUMNS]
    assert not wide, f"{page.name}: {wide[0][:80]}"


@pytest.mark.parametrize("page", READ, ids=named)
def test_sentences_are_plain(page: Path) -> None:
    text = text_of(page)
    found = [f"{match[0]!r}: write {plain!r}" for bad, plain in STRANGE.items() for match in re.finditer(bad, text)]
    assert not found, f"{page.name}: {'; '.join(found)}"


def test_the_readme_is_read_in_a_minute() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 130
    assert len(text.split()) <= 1_000
