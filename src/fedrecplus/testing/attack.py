"""What every attack of the audit promises."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import ClassVar

from fedrecplus.audit.guess import KNOWINGS, SIGHTS

KNOWS_A_CLIENT = ("device", "data", "rounds", "engines", "training", "deploy", "report")
"""what knows a client's ratings, its weights or its secret: a server has none of it"""


class AttackContract:
    """Derive from it and name the attack's module: it may look only at what a server sees."""

    module: ClassVar[str]

    def test_it_says_what_it_is_and_has_its_function(self) -> None:
        """A line of documentation, and ``attack``."""
        module = importlib.import_module(self.module)
        assert (module.__doc__ or "").strip()
        assert callable(module.attack)

    def test_it_says_what_it_sees_and_knows_in_known_words(self) -> None:
        """``SEES`` and ``KNOWING``, where the module has them."""
        module = importlib.import_module(self.module)
        assert set(getattr(module, "SEES", SIGHTS)) <= set(SIGHTS)
        assert getattr(module, "SEES", SIGHTS), "an attack looks at something"
        assert getattr(module, "KNOWING", KNOWINGS[0]) in KNOWINGS

    def test_it_looks_only_at_what_a_server_sees(self) -> None:
        """Nothing in the module comes from where clients' secrets are."""
        module = importlib.import_module(self.module)
        homes = {getattr(value, "__module__", "") or "" for value in vars(module).values()}
        homes |= {value.__name__ for value in vars(module).values() if inspect.ismodule(value)}
        private = {f"fedrecplus.{name}" for name in KNOWS_A_CLIENT}
        assert not {home for home in homes if ".".join(home.split(".")[:2]) in private and home in sys.modules}
