"""Rules from outside, importable while tests run."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedrecplus.parts import part
from tests.outside.my_rules import write_all


@pytest.fixture(scope="session", autouse=True)
def my_rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder on the path with the package ``my_rules``."""
    folder = tmp_path_factory.mktemp("outside")
    write_all(folder)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield folder
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.split(".")[0] == "my_rules"]:
        del sys.modules[name]
    part.part_class.cache_clear()
