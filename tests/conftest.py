"""What every test shares.

In CI a skipped test is a failed one, since a missing tool must not pass for a green run. Hypothesis draws the same
examples each time and doesn't look at the clock: a test fails for its subject alone, and again when one looks into it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from fedrecplus.workers import THREADS
from tests.waiting import GIVE_UP

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_configure() -> None:
    """Before libraries are loaded, which read it then: threads of theirs that wait for each other take all cores."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """pytest-xdist has the cores: what a test doesn't ask processes for stays in its own, which needs no start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(THREADS, "1")
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of two finished trainings with other seeds, trained once, to be read alone."""
    from tests.training.published_runs import finished_run  # here: most tests need no training

    folder = tmp_path_factory.mktemp("runs")
    return finished_run(folder / "one"), finished_run(folder / "two", seed=1)


@pytest.fixture(scope="session")
def run(runs: tuple[Path, Path]) -> Path:
    """The first of them."""
    return runs[0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's chromium, without a window."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright  # here: most tests need no browser

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=1000 * GIVE_UP)
        yield started
        started.close()


def _skipped(config: pytest.Config) -> list[str]:
    """Skipped tests and modules, with their reasons; empty in an xdist worker, whose reports the controller gets."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") != "true" or reporter is None:
        return []
    lines = (
        f"{report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr}"
        for report in reporter.stats.get("skipped", [])
    )
    return list(dict.fromkeys(lines))  # with doctests on, a skipped module is collected and reported twice


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in _skipped(config):
        terminalreporter.write_line(f"CI=true, so this skip fails the run: {line}", red=True)
