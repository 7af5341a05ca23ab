"""The README's Python example runs, and prints what the README says.

After a change of presets: ``python -m tests.experiments.test_readme`` writes the new output into the README.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import pytest

import fedrecplus as fr

README = Path(__file__).parents[2] / "README.md"
EXAMPLE = re.compile(r"## From Python\n\n```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```\n", re.S)
NUMBER = re.compile(r"\d+\.\d*")
TOLERANCE = 0.01
"""processors differ in how they round; the last digit shown may move"""


def example() -> tuple[str, str]:
    found = EXAMPLE.search(README.read_text(encoding="utf-8"))
    assert found, "README.md has no Python example with its output"
    return found[1], found[2]


def output_of(code: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    return printed.getvalue()


def words(text: str) -> str:
    return " ".join(NUMBER.sub("#", text).split())


def numbers(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)]


def test_the_example_is_ten_lines() -> None:
    code, _ = example()
    assert len([line for line in code.splitlines() if line]) <= 10


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On made-up ratings, with the ids that the example asks for: no network, and a second or two."""
    monkeypatch.chdir(tmp_path)
    ratings = fr.load("synthetic:clients=250,items=300,ratings_per_client=6")
    monkeypatch.setattr(fr, "load", lambda _: ratings)
    code, shown = example()
    printed = output_of(code)
    assert len(printed.splitlines()) == len(shown.splitlines())
    assert len(numbers(printed)) == len(numbers(shown))


@pytest.mark.slow
def test_the_example_prints_what_the_readme_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, shown = example()
    printed = output_of(code)
    assert words(printed) == words(shown)
    assert numbers(printed) == pytest.approx(numbers(shown), abs=TOLERANCE)


if __name__ == "__main__":
    code, shown = example()
    text = README.read_text(encoding="utf-8")
    os.chdir(tempfile.mkdtemp())  # the example saves a model
    README.write_text(text.replace(f"```text\n{shown}```", f"```text\n{output_of(code)}```"), encoding="utf-8")
