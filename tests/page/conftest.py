"""Small trained models of every kind that the page computes, and their sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import assign, preset
from fedrecplus.data import Scale
from fedrecplus.training import train
from fedrecplus.web.page.build import build_site
from tests.page.browser import served
from tests.small_data import small_ratings

RUNS = {
    "fedmf": ("fedmf", ()),
    "fedrec+": ("fedrec+", ()),
    "fedrec+private": ("fedrec+private", ()),
    "fedrec+secure": ("fedrec+secure", ()),
    "mf": ("fedrec", ()),
    "paper": ("fedrec+paper", ()),
    "biased-mf": ("fedmf-vanilla", ("model.rule=biased-mf",)),
    "ials": ("fedrec+secure", ("model.rule=ials",)),
    "fcf": ("fcf", ()),
    "biases": ("biases", ()),
    "follows": ("fedrec+secure", ("model.recency=3",)),
    "fcf-follows": ("fcf", ("model.recency=3",)),
    "half-stars": ("fedrec+secure", ()),
    "hundred": ("fedmf", ()),
    "likes": ("fedrec+secure", ()),
    "thumbs": ("fedrec+secure", ()),
    "many-items": ("fedmf", ()),
    "popular": ("fedmf", ("model.popularity_weight=0.5",)),
}
"""name → preset and changes"""

SCALES = {
    "half-stars": Scale(0.5, 5.0, 0.5),
    "likes": Scale(0.0, 1.0, 1.0),
    "thumbs": Scale(-1.0, 1.0, 2.0),
    "hundred": Scale(0.0, 100.0, 1.0),
}


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run folder of a name in ``RUNS``, trained once."""
    made: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("run")
            algorithm, changes = RUNS[name]
            config = assign(preset(algorithm), [*changes, "server.rounds=6"])
            scale = SCALES.get(name)
            items = 330 if name == "many-items" else 150
            ratings = small_ratings(80, items, scale=scale)
            if name == "likes":
                ratings = replace(ratings, codes=np.ones_like(ratings.codes))
            train(ratings, None, config, out=made[name], overwrite=True)
        return made[name]

    return run


@pytest.fixture(scope="module")
def address(site_of: Callable[[str], Path]) -> Iterator[str]:
    """Where a site of the default is served."""
    with served(site_of("fedrec+secure")) as where:
        yield where


@pytest.fixture(scope="session")
def site_of(run_of: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The site of a name in ``RUNS``, built once."""
    made: dict[str, Path] = {}

    def site(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("site")
            build_site(run_of(name), made[name])
        return made[name]

    return site
