"""The Python in the pages for newcomers runs, on a small file of ratings."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fedrecplus as fr

DOCS = Path(__file__).parents[1] / "docs"


def code_of(page: str, language: str = "python") -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)
    assert found
    return found


def shorter(code: str) -> str:
    """The same with fewer rounds: it is the calls that are tested."""
    return re.sub(r'FedRec\("(\S+?)"', r'FedRec("\1", server__rounds=2', code)


def test_the_quickstart_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDRECPLUS_THREADS", "1")
    made_up = fr.load("synthetic:clients=60,items=40,ratings_per_client=8").to_frame()
    made_up.with_columns(timestamp=pl.Series(range(len(made_up)))).write_csv("ratings.csv")
    namespace: dict[str, object] = {}
    for code in code_of("quickstart.md"):
        exec(compile(shorter(code), "quickstart.md", "exec"), namespace)
    assert Path("model/model.safetensors").exists()


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_up = fr.load("synthetic:clients=60,items=40,ratings_per_client=8").to_frame()
    frame = made_up.rename({"user": "reader", "item": "isbn", "rating": "stars"})
    frame = frame.with_columns(day=pl.Series(range(len(frame))))
    books = pl.DataFrame({"isbn": range(40), "title": [f"Book {n}" for n in range(40)]})
    for code in code_of("own-data.md"):
        exec(compile(code, "own-data.md", "exec"), {"frame": frame, "books": books})
    assert Path("runs/books/result.json").exists()


def test_the_rules_of_the_page_on_extending_run_and_hold_the_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rarest, _, tests = code_of("extending.md")
    (tmp_path / "my_rules").mkdir()
    (tmp_path / "my_rules" / "__init__.py").touch()
    (tmp_path / "my_rules" / "rarest.py").write_text(rarest, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_rules", raising=False)  # another's, where tests/outside ran before
    namespace: dict[str, Any] = {}
    exec(compile(tests, "extending.md", "exec"), namespace)
    contract = namespace["TestRarest"]()
    for name in (name for name in dir(contract) if name.startswith("test_a_")):
        getattr(contract, name)()
    chosen = ["pseudo_items.rule=my_rules.rarest", "pseudo_items.at_least=5"]
    (tmp_path / "rarest.toml").write_text(code_of("extending.md", "toml")[0], encoding="utf-8")
    config = fr.load_config(tmp_path / "rarest.toml")
    assert fr.change(config, "algorithm", "fedrec+") == fr.assign(fr.preset("fedrec+"), chosen)
    run = fr.train("synthetic:clients=60,items=40,ratings_per_client=8", None, fr.assign(config, ["server.rounds=2"]))
    assert run.result["rounds"] == 2
