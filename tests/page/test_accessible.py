"""No finding of axe, and nothing that scrolls sideways: every view, light and dark, wide and narrow."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.page.browser import Opened
from tests.page.test_in_chromium import WIDTHS, rate_five
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow
SOURCES = Path(__file__).parents[2] / "page"
RUN_AXE = """axe.run(document, {resultTypes: ['violations']}).then(
  (found) => found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(' | ')}`))"""


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the page's sources with what package-lock.json names."""
    folder = tmp_path_factory.mktemp("npm") / "page"
    shutil.copytree(SOURCES, folder, symlinks=True, ignore=shutil.ignore_patterns("node_modules"))
    if (SOURCES / "node_modules" / ".package-lock.json").exists():
        (folder / "node_modules").symlink_to(SOURCES / "node_modules")
        return folder
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    subprocess.run(
        ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=GIVE_UP
    )
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(browser: Any, address: str, npm: Path, scheme: str, width: int) -> None:
    axe = (npm / "node_modules" / "axe-core" / "axe.min.js").read_text()
    how = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "reduced_motion": "reduce"}
    one = Opened(browser, f"{address}#rate", **how)
    rate_five(one)
    one.page.evaluate(axe)
    for view in ("rate", "list", "leaves"):
        one.page.evaluate("(view) => { location.hash = view; }", view)
        one.until(lambda view=view: one.page.evaluate("document.body.dataset.view") == view, view)
        presets = ("fedrec+secure", "fedrec+private", "fedrec++") if view == "leaves" else (None,)
        for preset in presets:
            if preset:
                one.until(lambda: "…" not in one.page.locator(".verdict").all_inner_texts(), "all presets computed")
                one.page.get_by_role("tab", name=preset).click()
            assert one.page.evaluate(RUN_AXE) == [], (view, preset)
            needed, there = one.page.evaluate(WIDTHS)
            assert needed <= there, f"{view} scrolls sideways"
    assert one.complaints == []
    one.close()


def test_axe_itself_finds_something(browser: Any, address: str, npm: Path) -> None:
    one = Opened(browser, address)
    one.page.evaluate((npm / "node_modules" / "axe-core" / "axe.min.js").read_text())
    one.page.evaluate("document.body.append(document.createElement('button'))")
    assert any(found.startswith("button-name") for found in one.page.evaluate(RUN_AXE))
    one.close()


def test_the_committed_build_is_what_the_sources_give(npm: Path, tmp_path: Path) -> None:
    subprocess.run(["node_modules/.bin/tsc", "--noEmit"], cwd=npm, check=True, timeout=GIVE_UP)
    subprocess.run(["node", "build.mjs", str(tmp_path / "site")], cwd=npm, check=True, timeout=GIVE_UP)
    committed = SOURCES.parent / "src" / "fedrecplus" / "web" / "page" / "site"
    names = sorted(path.name for path in committed.iterdir())
    assert names == sorted(path.name for path in (tmp_path / "site").iterdir())
    for name in names:
        assert (committed / name).read_bytes() == (tmp_path / "site" / name).read_bytes(), f"{name}: run `make page`"
