"""What every part promises, whatever its kind: documented options, and the same rounds in every engine."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar, cast

import msgspec

from fedrecplus.config import Config, change, dumps, loads
from fedrecplus.device import Device
from fedrecplus.engines import Problem
from fedrecplus.parts import Part
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Setting, read_setting, settings_of
from fedrecplus.testing.agreement import assert_engines_agree
from fedrecplus.testing.example import example_config, example_round

P = TypeVar("P", bound=Part[Any])


class Contract(Generic[P]):
    """Derive from the contract of a kind and name the part: ``rule = "my_package.my_rule"``."""

    kind: ClassVar[str]
    rule: ClassVar[str]
    """a built-in name, an installed one, or an import path"""
    changes: ClassVar[tuple[str, ...]] = ()
    """settings, as for ``--set``, of the training that the part is tried in"""

    @property
    def part(self) -> P:
        """The part with its settings in the example's training."""
        return cast(P, getattr(self.config(), self.kind))

    def config(self, *more: str) -> Config:
        """The example's training with this part."""
        return example_config(*self._changes(*more))

    def round(self, *more: str, scale: Any = None) -> tuple[Problem, Broadcast, list[Device]]:
        """A round of the example's training with this part."""
        return example_round(*self._changes(*more), scale=scale)

    def _changes(self, *more: str) -> tuple[str, ...]:
        return (f"{self.kind}.rule={self.rule}", *self.changes, *more)

    def test_it_says_what_it_is(self) -> None:
        """The first line of the module is what lists of rules show."""
        assert len(self.part.summary) > 10

    def test_each_option_has_a_meaning_and_a_default_within_its_range(self) -> None:
        """What ``fedrecplus settings`` lists, ``tune`` searches and TOML files hold."""
        owner = self.part.settings_type
        for option in settings_of(owner):
            assert option.meaning, f"{option.name} has no meaning: annotate it with number(…) or text(…)"
            assert option.default is not msgspec.NODEFAULT, f"{option.name} has no default"
            assert read_setting(owner, option.name, option.default, "default") == option.default
            if isinstance(option.default, int | float) and not isinstance(option.default, bool):
                assert option.low is not None, f"{option.name} has no range"
                assert option.high is not None, f"{option.name} has no range"

    def test_other_values_survive_a_file(self) -> None:
        """A run folder holds every option as TOML, and gives it back."""
        config = self.config()
        for option in settings_of(self.part.settings_type):
            for value in other_values(option):
                changed = change(config, f"{self.kind}.{option.name}", str(value))
                assert getattr(changed, self.kind).values[option.name] == value
                assert loads(dumps(changed)) == changed

    def test_rounds_are_the_same_in_every_engine(self) -> None:
        """Whether the part has a kernel or not."""
        assert_engines_agree(self.config())


def other_values(option: Setting) -> tuple[Any, ...]:
    """Some values that a setting may have besides its default."""
    if isinstance(option.default, bool):
        return (not option.default,)
    if option.values:
        return tuple(value for value in option.values if value != option.default)
    if option.low is None or option.high is None:
        return ("another",) if isinstance(option.default, str) else ()
    kind = int if option.whole else float
    return tuple(kind(bound) for bound in (option.low, option.high) if kind(bound) != option.default)
