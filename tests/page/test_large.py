"""As many items as ML-100K has, and sixty thousand: the size of the site, and how long lists take."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.web.page.build import build_site
from tests.page.browser import Opened, served
from tests.page.large_run import large_run
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
RATE = """(place) => {
  performance.clearMarks();
  const before = performance.now();
  document.querySelectorAll('.entry')[place].querySelectorAll('.star')[place % 5].click();
  return performance.getEntriesByName('list')[0].startTime - before;
}"""
FIRST = "performance.getEntriesByName('list')[0].startTime"
LARGEST_OF_1682, LARGEST = 400_000, 6_000_000
LONGEST_LOAD, LONGEST = 1000.0, 50.0
"""milliseconds; other processes have the cores too, and only ever add: so tests try until it was quick enough"""


def test_a_site_of_the_size_of_ml_100k_is_small_and_shows_its_list_at_once(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    site = build_site(large_run(tmp_path / "run", 1682), tmp_path / "site")
    assert site.compressed <= LARGEST_OF_1682

    def loads_quickly() -> bool:
        one = Opened(browser, where)  # a fresh context: nothing is cached
        took = float(one.page.evaluate(FIRST))
        one.close()
        return took < LONGEST_LOAD

    with served(site.folder) as where:
        wait_until(loads_quickly)


def test_sixty_thousand_items_fit_and_are_ranked_at_once(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    site = build_site(large_run(tmp_path / "run"), tmp_path / "site")
    assert site.compressed <= LARGEST
    assert site.cost["largest_change"] < 0.1
    with served(site.folder) as where:
        one, places = Opened(browser, where), itertools.count()
        wait_until(lambda: one.page.evaluate(RATE, next(places) % 9) < LONGEST)
        assert len(one.rated()) >= 1
        one.close()
