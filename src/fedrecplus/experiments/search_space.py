"""What a search may change: one dimension per setting, read from text or laid around a config's own values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from fedrecplus.config import Config, change, check, settings_in, value_of
from fedrecplus.errors import UserError
from fedrecplus.experiments.validation import Objective

_SOURCE = "--search"
_FORM = "write part.option=low..high, part.option=low..high:log or part.option=a,b,c"
_RANGE = re.compile(r"(?P<low>.+?)\.\.(?P<high>.+?)(?P<log>:log)?")
_DIGITS = 3
"""significant digits of a drawn number: no search is more precise than that"""
_NEVER = {
    "seed": "a seed decides folds and draws: choosing one by its error is luck",
    "algorithm": "the algorithm is a name, not a setting",
}
_ALWAYS = {"model.factors", "model.regularisation", "model.learning_rate", "model.noise", "model.item_prior"}
"""searched by default even where the config leaves them as they are"""
_OF_LISTS = re.compile(r"model\.(interaction_factors|rating_weight|popularity_weight)")
"""what decides how lists are ranked, and ratings hardly"""
_ON_REQUEST = re.compile(
    r"pseudo_items\..*|channel\..*|privacy\..*|statistics\..*"  # privacy, which no error speaks for
    r"|server\.rounds|model\.local_epochs|model\.batch_size|evaluation\..*"  # the price of a trial
    r"|cohort\..*|cluster\..*"  # who takes part, and where, is not ours to choose
)
"""numbers that are searched only if they are named"""


@dataclass(frozen=True)
class Dimension:
    """A setting, and the values that it may have."""

    name: str
    values: tuple[Any, ...]
    """choices, or both ends of a range of numbers, which are whole if its ends are"""
    kind: Literal["choice", "range", "log"] = "choice"

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name}={','.join(str(v).lower() if isinstance(v, bool) else str(v) for v in self.values)}"
        return f"{self.name}={'..'.join(map(repr, self.values))}{':log' if self.kind == 'log' else ''}"

    def nearest(self, value: Any) -> Any:
        """The value, if it may be; else the nearer end of the range, or the first choice."""
        if self.kind == "choice":
            return value if value in self.values else self.values[0]
        return type(self.values[0])(min(max(value, self.values[0]), self.values[1]))

    def draw(self, trial: Any, own: Any) -> Any:
        """What Optuna suggests for a trial, in few digits unless it is the config's own value."""
        if self.kind == "choice":
            return trial.suggest_categorical(self.name, self.values)
        if isinstance(self.values[0], int):
            return trial.suggest_int(self.name, *self.values, log=self.kind == "log")
        drawn = trial.suggest_float(self.name, *self.values, log=self.kind == "log")
        return drawn if drawn == own else self.nearest(_short(drawn))


def parse_dimensions(texts: Iterable[str], config: Config) -> list[Dimension]:
    """Dimensions as they are written on the command line, checked against the config that they will change.

    >>> [str(d) for d in parse_dimensions(["model.factors=5..50:log", "server_optimizer.rule=sgd,adam"], Config())]
    ['model.factors=5..50:log', 'server_optimizer.rule=sgd,adam']
    """
    dimensions = [_parse(text, config) for text in texts]
    names = [dimension.name for dimension in dimensions]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{_SOURCE} has {name} twice", "give each setting once")
    return dimensions


def default_dimensions(config: Config, *, lists: bool = False) -> list[Dimension]:
    """The neighbourhood of a config: numbers that it sets to something of its own and that aren't switched off.

    With ``lists`` also what lists are ranked by, from none at all for a weight.
    """
    dimensions = []
    for name, setting in settings_in(config):
        if setting.low is None or setting.high is None or name in _NEVER or _ON_REQUEST.fullmatch(name):
            continue
        value, ranks = value_of(config, name), lists and _OF_LISTS.fullmatch(name) is not None
        if ranks and name.endswith("_weight"):
            dimensions.append(Dimension(name, (0.0, _short(4 * value or 1.0)), "range"))
        elif value > max(setting.low, 0) and (ranks or value != setting.default or name in _ALWAYS):
            dimensions.append(_around(name, value, setting.low, setting.high))
    return dimensions


def _around(name: str, value: float, low: float, high: float) -> Dimension:
    """Values up to four times more or less, whole numbers up to twice; of shares between 0 and 1, odds instead.

    >>> print(_around("server_optimizer.momentum", 0.8, 0.0, 1.0), _around("model.factors", 20, 1, 4096))
    server_optimizer.momentum=0.5..0.941 model.factors=10..40:log
    """
    is_share = value < 1 and (high <= 1 or name.endswith("_decay"))
    if is_share:
        odds = value / (1 - value)
        first, last = (share / (1 + share) for share in (odds / 4, odds * 4))
    else:
        times = 2 if isinstance(value, int) else 4
        first, last = value / times, value * times
    first, last = max(first, low), min(last, high)
    ends = (round(first), round(last)) if isinstance(value, int) else (_short(first), _short(last))
    return Dimension(name, ends, "range" if is_share else "log")


def _short(number: float) -> float:
    return float(f"{number:.{_DIGITS}g}")


def with_values(config: Config, values: dict[str, Any]) -> Config:
    """The config with these settings; an error if they can't be together."""
    for name, value in sorted(values.items(), key=lambda pair: not pair[0].endswith(".rule")):
        config = change(config, name, value, _SOURCE)
    return check(config)


def _parse(text: str, config: Config) -> Dimension:
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not equals or not rest:
        raise UserError(f"{_SOURCE} {text!r} says nothing to choose from", _FORM)
    if name in _NEVER:
        raise UserError(f"{_SOURCE} {name}: {_NEVER[name]}", "search other settings")
    if not (match := _RANGE.fullmatch(rest)):
        return Dimension(name, _choices(text, name, rest, config))
    low, high = (_read(config, name, end) for end in (match["low"], match["high"]))
    if isinstance(low, bool | str):
        raise UserError(f"{_SOURCE} {text!r}: {name} is not a number", f"write {name}=a,b,c")
    if not low < high:
        raise UserError(f"{_SOURCE} {text!r}: {low!r} is not below {high!r}", "give the lower end first")
    if match["log"] and low <= 0:
        raise UserError(f"{_SOURCE} {text!r}: {low!r} has no logarithm", "begin above zero, or leave :log out")
    return Dimension(name, (low, high), "log" if match["log"] else "range")


def _choices(text: str, name: str, rest: str, config: Config) -> tuple[Any, ...]:
    if rest.endswith(":log"):
        raise UserError(f"{_SOURCE} {text!r}: choices have no logarithm", _FORM)
    values = tuple(_read(config, name, value) for value in rest.split(","))
    if len(values) < 2 or len(set(values)) < len(values):
        remedy = f"{_FORM}; one value is set with --set {name}={rest}"
        raise UserError(f"{_SOURCE} {text!r} needs two different values or more", remedy)
    return values


def _read(config: Config, name: str, text: str) -> Any:
    """The value behind a text; whether values can be together is found when they are."""
    return value_of(change(config, name, text.strip(), _SOURCE), name)


@dataclass(frozen=True)
class Trial:
    """One try."""

    number: int
    """0 is the config that the search starts from"""
    settings: dict[str, Any]
    state: str = "running"
    """in the end ``complete``, ``pruned`` or ``failed``"""
    objective: str = "rmse"
    """what it is judged by"""
    value: float | None = None
    """mean over data sets of the objective after the last round, RMSE in standard units; None unless complete"""
    by_dataset: dict[str, float] = field(default_factory=dict)
    """the same of each, a mean over its cuts"""
    best_round: int | None = None
    """the evaluated round with the best mean: before the last, fewer rounds do better; the last, more may"""
    best_round_value: float | None = None
    seconds: float = 0.0
    why: str | None = None
    """why it failed or was pruned"""

    @classmethod
    def of(cls, frozen: Any, objective: Objective) -> Trial:
        """A trial that has ended, from Optuna's record of it."""
        noted, curve = frozen.user_attrs, frozen.intermediate_values
        best = min(curve, key=lambda number: objective.better(curve[number]), default=None)
        facts = {"best_round": best, "best_round_value": curve.get(best), "seconds": frozen.duration.total_seconds()}
        facts["objective"] = objective.name
        if "failure" in noted:
            facts |= {"state": "failed", "why": noted["failure"]}
        elif frozen.state.name == "PRUNED":
            facts |= {"state": "pruned", "why": f"worse than the median in round {frozen.last_step}"}
        else:
            facts |= {"state": "complete", "value": frozen.value, "by_dataset": noted["by_dataset"]}
        return cls(noted["number"], noted["settings"], **facts)


@dataclass(frozen=True)
class Moment:
    """What there is to tell while trials run."""

    trial: Trial
    best: Trial | None
    """of the trials that are complete"""
    ended: int
    """how many trials have come to an end"""
    round: int = 0
    rounds: int = 0
    value: float | None = None
    """of the objective, after that round"""
