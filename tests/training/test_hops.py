"""The way from a CSV file to an RMSE stays short, and is the one that the document draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.hops import MOST_HOPS, hops


@pytest.mark.parametrize("algorithm", ["fedmf", "fedrec+secure"])
def test_a_rating_passes_few_functions(algorithm: str) -> None:
    path = hops(algorithm)
    assert path[0] == "training/loop.py: train"
    assert {"rounds/server.py: server_round", "training/evaluation.py: errors_of"} <= set(path), (
        "the trace lost its way"
    )
    assert (
        len(path) <= MOST_HOPS + (algorithm != "fedmf") * 6
    )  # a channel's own functions come on top, and one of validation


def test_the_document_draws_the_path() -> None:
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    drawing = text.split("## From a CSV file to an RMSE")[1].split("## Parts")[0]
    names = [name.rpartition(" ")[2] for name in hops("fedmf")]
    assert [name for name in names if name not in drawing and name != "train"] == []
