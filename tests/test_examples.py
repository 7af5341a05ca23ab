"""The notebooks under ``examples/`` run from their first cell to their last."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.waiting import GIVE_UP

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_there_are_three_and_they_hold_no_output() -> None:
    nbformat = pytest.importorskip("nbformat")
    books = sorted(EXAMPLES.glob("*.ipynb"))
    assert [book.stem for book in books] == ["audit", "first-model", "new-rule"]
    for book in books:
        notebook = nbformat.read(book, 4)
        assert all(not cell.get("outputs") for cell in notebook.cells), "clear the output before it is committed"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
@pytest.mark.parametrize("name", ["audit", "first-model", "new-rule"])
def test_a_notebook_runs(name: str) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=int(GIVE_UP), kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in shown)
