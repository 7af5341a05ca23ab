"""Every claim of docs/claims.md has a test, and every sentence of the README about privacy leads there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
CLAIMS = (HOME / "docs" / "claims.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", CLAIMS)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    tree = ast.parse((HOME / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_claim_names_a_test() -> None:
    claims = re.findall(r"^\| ([A-Z]\d+) \|", CLAIMS, re.M)
    assert len(claims) > 5
    assert len(set(claims)) == len(claims)
    assert re.findall(r"^- ([A-Z]\d+):(?: |\n    - )`tests/[\w/]+\.py::", CLAIMS, re.M) == claims
    assert len(NAMED) == CLAIMS.count("`tests/") - CLAIMS.count("`tests/test_claims.py`")


def test_the_readme_leads_there_and_claims_no_more() -> None:
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    assert "docs/claims.md" in readme
    retracted = ("no attack of a server gains", "and no upload, and", "for a person's whole data", "gains at most")
    assert [words for words in retracted if words in readme] == []
