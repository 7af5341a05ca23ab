"""What every attack of the audit promises."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any, ClassVar

from fedrecplus.audit.attacks import KNOWINGS, SIGHTS, Attack

KNOWS_A_CLIENT = ("device", "data", "rounds", "engines", "training", "deploy", "report")
"""what knows a client's ratings, its weights or its secret: a server has none of it"""


class AttackContract:
    """Derive from it and name the attack's module: it may look only at what a server sees."""

    module: ClassVar[str]

    @property
    def rule(self) -> str:
        """Its name."""
        package, _, name = self.module.rpartition(".")
        return name.replace("_", "-") if package == Attack.__module__ else self.module

    def test_it_says_what_it_is(self) -> None:
        """A line of documentation."""
        assert Attack.choose(self.rule).summary

    def test_it_says_what_it_sees_and_knows_in_known_words(self) -> None:
        """``SEES`` and ``KNOWING``."""
        attack: Attack[Any] = Attack.choose(self.rule)
        assert set(attack.SEES) <= set(SIGHTS)
        assert attack.SEES, "an attack looks at something"
        assert attack.KNOWING in KNOWINGS

    def test_it_looks_only_at_what_a_server_sees(self) -> None:
        """Nothing in the module comes from where clients' secrets are."""
        module = importlib.import_module(self.module)
        homes = {getattr(value, "__module__", "") or "" for value in vars(module).values()}
        homes |= {value.__name__ for value in vars(module).values() if inspect.ismodule(value)}
        private = {f"fedrecplus.{name}" for name in KNOWS_A_CLIENT}
        assert not {home for home in homes if ".".join(home.split(".")[:2]) in private and home in sys.modules}
