"""What a search may change: one dimension per setting, read from text or made to fit a config."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fedrecplus.config import Config, change, check
from fedrecplus.config.check import RANGES
from fedrecplus.errors import UserError

_SOURCE = "--search"
_FORM = "write part.option=low..high, part.option=low..high:log or part.option=a,b,c"
_RANGE = re.compile(r"(?P<low>.+?)\.\.(?P<high>.+?)(?P<log>:log)?")
_NOT_SEARCHED = {
    "seed": "a seed decides folds and draws: choosing one by its error is luck",
    "algorithm": "the algorithm is a name, not a setting",
}


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole ones if both ends are."""

    name: str
    low: float
    high: float
    log: bool = False

    def __str__(self) -> str:
        return f"{self.name}={self.low!r}..{self.high!r}{':log' if self.log else ''}"

    def nearest(self, value: Any) -> float:
        """The value, or the end of the range that is nearer to it."""
        return type(self.low)(min(max(value, self.low), self.high))


@dataclass(frozen=True)
class Choice:
    """Some values of a setting."""

    name: str
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.name}={','.join(_text(value) for value in self.values)}"

    def nearest(self, value: Any) -> Any:
        """The value, or the first of the choices where it isn't one of them."""
        return value if value in self.values else self.values[0]


Dimension = Range | Choice


def parse_dimensions(texts: Iterable[str], config: Config) -> list[Dimension]:
    """Dimensions as they are written on the command line, checked against the config that they will change.

    >>> [str(d) for d in parse_dimensions(["model.factors=5..50:log", "server.step=plain,adam"], Config())]
    ['model.factors=5..50:log', 'server.step=plain,adam']
    """
    dimensions = [_parse(text, config) for text in texts]
    names = [dimension.name for dimension in dimensions]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{_SOURCE} has {name} twice", "give each setting once")
    return dimensions


def default_dimensions(config: Config) -> list[Dimension]:
    """A search for a config whose parts are settled: step sizes, weight decay, size, and what its parts have besides.

    Ranges lie around the config's own values, so a preset's search is its neighbourhood. The number of rounds is left
    alone: it is the price of a trial, and the best round of each trial is noted anyway.
    """
    wanted: list[tuple[str, float, bool]] = [
        ("client.learning_rate", 4.0, True),
        ("client.contrast", 3.0, config.client.contrast > 1),
        ("server.contrast", 3.0, config.server.contrast > 1),
        ("model.regularisation", 5.0, True),
        ("model.user_regularisation", 5.0, config.model.user_regularisation > 0),
        ("model.floor", 4.0, config.model.floor > 0),
        ("model.factors", 2.0, True),
        ("prediction.regularisation", 5.0, config.prediction.factors == "refit"),
        ("prediction.floor", 5.0, config.prediction.factors == "refit"),
        ("prediction.mean_ratings", 5.0, config.prediction.factors == "refit"),
        ("prediction.average_ratings", 5.0, config.prediction.factors == "refit"),
        ("prediction.traits", 3.0, config.prediction.factors == "refit"),
        ("prediction.content", 3.0, config.prediction.factors == "refit"),
        ("prediction.trait_ratings", 5.0, config.prediction.factors == "refit"),
        ("model.start_spread", 5.0, config.model.start_spread > 0),
    ]
    dimensions: list[Dimension] = [
        _around(name, value_of(config, name), times) for name, times, fits in wanted if fits and value_of(config, name)
    ]
    if config.client.learning_rate_decay < 1:
        dimensions.append(Range("client.learning_rate_decay", 0.8, 1.0))
    if config.aggregation.rule == "wasserstein":
        dimensions.append(Range("aggregation.temperature", 0.0, 1.0))
    if config.server.step in ("momentum", "adam"):
        dimensions.append(Range("server.momentum", 0.5, 0.98))
    if config.trainer == "federated":
        dimensions.append(Choice("model.shrink_to", ("zero", "start")))
    return dimensions


def value_of(config: Config, name: str) -> Any:
    """A setting by its name.

    >>> value_of(Config(), "server.rounds")
    100
    """
    section, _, option = name.rpartition(".")
    return getattr(getattr(config, section) if section else config, option)


def apply(config: Config, values: dict[str, Any]) -> Config:
    """The config with these settings; an error if they can't be together."""
    for name, value in values.items():
        config = change(config, name, value, _SOURCE)
    return check(config)


def _around(name: str, value: float, times: float) -> Range:
    low, high = RANGES[name]
    kind = type(value)
    ends = max(value / times, low), min(value * times, high)
    first, last = (round(end) if kind is int else float(f"{end:.3g}") for end in ends)
    return Range(name, first, last, log=True)


def _parse(text: str, config: Config) -> Dimension:
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not rest:
        raise UserError(f"{_SOURCE} {text!r} says nothing to choose from", _FORM)
    if name in _NOT_SEARCHED:
        raise UserError(f"{_SOURCE} {name}: {_NOT_SEARCHED[name]}", "search other settings")
    if found := _RANGE.fullmatch(rest):
        return _range(text, name, _read(config, name, [found["low"], found["high"]]), bool(found["log"]))
    if rest.endswith(":log"):
        raise UserError(f"{_SOURCE} {text!r}: choices have no logarithm", _FORM)
    values = _read(config, name, rest.split(","))
    if len(values) < 2 or len(set(values)) < len(values):
        remedy = f"{_FORM}; one value is set with --set {name}={rest}"
        raise UserError(f"{_SOURCE} {text!r} needs two different values or more", remedy)
    return Choice(name, tuple(values))


def _range(text: str, name: str, ends: Sequence[Any], log: bool) -> Range:
    low, high = ends
    if isinstance(low, bool | str):
        raise UserError(f"{_SOURCE} {text!r}: {name} is not a number", f"write {name}=a,b,c")
    if not low < high:
        raise UserError(f"{_SOURCE} {text!r}: {low!r} is not below {high!r}", "give the lower end first")
    if log and low <= 0:
        raise UserError(f"{_SOURCE} {text!r}: {low!r} has no logarithm", "begin above zero, or leave :log away")
    return Range(name, low, high, log)


def _read(config: Config, name: str, texts: Sequence[str]) -> list[Any]:
    """The values behind texts. One that is wrong by itself is refused, one that only lacks another choice is not."""
    values = []
    for text in texts:
        changed = change(config, name, text.strip(), _SOURCE)
        values.append(value_of(changed, name))
        try:
            check(changed)
        except UserError:
            check(change(Config(), name, text.strip(), _SOURCE))
    return values


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
