"""The site's files: built from these sources, strict about scripts, complete in texts, small, and nothing private."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.errors import UserError
from fedrecplus.web import FolderPages, PageServer
from fedrecplus.web.page.build import build_site, page_files, read_model
from fedrecplus.web.page.quantise import quantise, tables_of, with_tables
from fedrecplus.web.page.what_leaves import SHOWN

SOURCES = Path(__file__).parents[2] / "page"
BUILT = Path(__file__).parents[2] / "src" / "fedrecplus" / "web" / "page" / "site"


def test_the_committed_build_is_of_these_sources() -> None:
    """A stale build is told without npm; a slow test builds it anew."""
    files = [path for part in ("src", "static") for path in (SOURCES / part).rglob("*") if path.is_file()]
    names = [path.relative_to(SOURCES).as_posix() for path in files]
    digest = hashlib.sha256()
    for name in sorted([*names, "build.mjs", "package-lock.json", "tsconfig.json"]):
        digest.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    built = json.loads((BUILT / "sources.json").read_text())["sha256"]
    assert built == digest.hexdigest(), "run `make page`"


def test_every_text_is_in_one_file_and_none_is_left_over() -> None:
    texts = json.loads((SOURCES / "static" / "texts.json").read_text())
    code = "\n".join(path.read_text() for path in (SOURCES / "src").rglob("*.ts"))
    asked = set(re.findall(r"""\bt\(\s*"([^"]+)\"""", code))
    computed = re.findall(r"`([a-z-]+\.[a-z.-]*)\$\{[^`]*\}([a-z.-]*)`", code)
    named = asked | set(re.findall(r'"([a-z-]+\.[a-z.-]+)"', code))
    plain = {re.sub(r"\.(one|other)$", "", name) for name in texts} - {"language"}
    plain = {name.removeprefix("on-device.").removeprefix("on-server.") for name in plain}
    assert asked <= plain, "texts that are asked for and not there"
    assert {f"preset.{name}" for name in SHOWN} <= plain
    patterns = [re.compile(rf"{re.escape(before)}[a-z+-]+{re.escape(after)}") for before, after in computed]
    unused = {name for name in plain - named if not any(pattern.fullmatch(name) for pattern in patterns)}
    assert unused == set()


def test_only_its_own_scripts_may_run() -> None:
    page = page_files()["index.html"].decode()
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in page
    assert "unsafe" not in page
    assert re.findall(r"<script[^>]*>([^<]+)</script>", page) == []
    assert not re.search(r"\son\w+=|\sstyle=|<style", page)
    code = "\n".join(path.read_text() for path in (SOURCES / "src").rglob("*.ts"))
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert word not in code, "titles are data"
    assert (
        re.findall(
            r"https?://(?!www\.w3\.org/2000/svg)[^\s\"'`]+", code + page.replace("http://www.w3.org/2000/svg", "")
        )
        == []
    )


def test_a_site_is_complete_small_and_the_same_every_time(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    one, other = (build_site(run_of("fedrec+secure"), tmp_path / name) for name in ("one", "other"))
    assert one.files == other.files
    for name in one.files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()
    assert one.compressed < 100_000
    first = (tmp_path / "one" / "offline.js").read_text().splitlines()[0]
    kept = json.loads(re.fullmatch(r"self\.SITE=(.*);", first)[1])["files"]
    assert set(kept) == {"./", *one.files} - {"offline.js", "index.html"}


def test_nothing_of_any_client_is_in_it(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    run, copied = run_of("fedmf"), tmp_path / "run"
    copied.mkdir()
    for name in ("model.safetensors", "data.json", "result.json"):  # no clients.safetensors
        (copied / name).write_bytes((run / name).read_bytes())
    build_site(run, tmp_path / "one")
    build_site(copied, tmp_path / "other")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


@pytest.mark.parametrize("bits", [8, 16])
def test_no_number_moves_by_more_than_half_a_step(run_of: Callable[[str], Path], bits: int) -> None:
    model = read_model(run_of("fedrec+secure"))[0]
    table = quantise(model.V, bits)
    assert np.abs(table.values() - model.V).max() <= 0.5000001 * table.scale.max()
    rounded = with_tables(model, tables_of(model, bits))
    assert (rounded.public.popularity == model.public.popularity).all()
    assert ((rounded.public.content > 0) == (model.public.content > 0)).all(), "genres stay genres"


def test_more_bits_cost_less(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    coarse, fine = (build_site(run_of("fedmf"), tmp_path / str(bits), bits) for bits in (8, 16))
    assert fine.cost["largest_change"] < coarse.cost["largest_change"] / 5
    assert coarse.cost["largest_change"] < 0.05


def test_runs_beside_it_give_presets_of_other_models_a_table(run_of: Callable[[str], Path], tmp_path: Path) -> None:
    build_site(run_of("fedmf"), tmp_path, besides=[run_of("mf")])
    presets = {each["name"]: each for each in json.loads((tmp_path / "leaves.json").read_text())["presets"]}
    assert presets["fedmf"]["own"]
    assert presets["fedrec+"]["table"]["number"] == 0
    assert (presets["fedrec"]["table"]["number"], presets["fedrec"]["trained_by"]) == (1, "fedrec")
    assert presets["fedrec+secure"]["table"] is None
    with pytest.raises(UserError, match="other items"):
        build_site(run_of("fedmf"), tmp_path, besides=[run_of("many-items")])


def test_the_command_says_what_it_made_and_what_is_wrong(
    run_of: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(run_of("fedmf"))
    assert exit_code_of(["page", run, "--out", str(tmp_path / "site")]) == 0
    assert "KB compressed" in capsys.readouterr().out
    assert (tmp_path / "site" / "model.bin").exists()
    for wrong in (["page", str(tmp_path / "none")], ["page", run, "--bits", "7"], ["page", str(tmp_path / "site")]):
        assert exit_code_of([*wrong, "--out", str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()
    with PageServer(FolderPages(tmp_path), "") as taken:
        port = str(taken.port)
        assert exit_code_of(["page", run, "--out", str(tmp_path / "site"), "--open", "--port", port]) == 2
    assert "--port" in capsys.readouterr().err
