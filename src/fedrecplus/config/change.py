"""Settings by name: reading, changing and listing them, with errors that name the nearest setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from fedrecplus.config.config import (
    ClusterSettings,
    CohortSettings,
    Config,
    EvaluationSettings,
    GeneralSettings,
    ServerSettings,
    StatisticsSettings,
)
from fedrecplus.errors import UnknownName, UserError, unknown_name
from fedrecplus.parts import KINDS, Part, choices, is_outside, kinds_of, part_class
from fedrecplus.settings import (
    Setting,
    Settings,
    check_constant,
    constants_of,
    read_setting,
    settings_of,
    unknown_setting,
)

SECTIONS: dict[str, type[Settings]] = {
    "statistics": StatisticsSettings,
    "cohort": CohortSettings,
    "server": ServerSettings,
    "evaluation": EvaluationSettings,
    "cluster": ClusterSettings,
}
"""the sections that are no choice of a part"""
_OLD_SECTIONS = {"client", "prediction"}
_RENAMED = {
    "client.local_epochs": "model.local_epochs",
    "client.learning_rate": "model.learning_rate",
    "client.learning_rate_decay": "model.learning_rate_decay",
    "client.batch_size": "model.batch_size",
    "client.u_step": "model.user_step",
    "client.fraction": "cohort.fraction",
    "client.dropout": "cohort.dropout",
    "model.biases": "model.rule=biased-mf",
    "model.global_mean": "model.rule=biased-mf",
    "model.start": "model.init",
    "model.start_spread": "model.init_scale",
    "model.start_rating": "model.init_rating",
    "pseudo_items.encoder": "encoder.rule",
    "pseudo_items.pad": "pseudo_items.size_classes",
    "aggregation.denoising": "channel.rule=denoising and channel.share",
    "server.step": "server_optimizer.rule",
    "server.learning_rate": "server_optimizer.learning_rate",
    "server.momentum": "server_optimizer.momentum",
    "trainer": "engine=central",
}
"""settings of fedrecplus 0.1, and what to write instead"""
_MERGED = {
    "aggregation.trim": "aggregation.hostile",
    "channel.encryption": "channel.cryptography",
    "channel.masks": "channel.cryptography",
    "channel.shares": "channel.cryptography",
    "model.solve_over": "model.user_step",
}
"""settings of early versions of 0.2 that have the name of another today"""
_GONE = {"pseudo_items.count": 0, "server_optimizer.learning_rate_decay": 1.0}
"""settings of early versions of 0.2 that nobody varied, and the value that they had"""


def change(config: Config, path: str, value: Any, source: str = "--set") -> Config:
    """The config with one setting changed; text is read as the setting's type.

    >>> change(Config(), "model.local_epochs", "5").model.settings.local_epochs
    5
    >>> change(Config(), "model.local_epoch", "5")
    Traceback (most recent call last):
    fedrecplus.errors.UnknownName: unknown setting 'model.local_epoch'
      → did you mean 'model.local_epochs'? Known: model.batch_size, model.factors, ...
    """
    if path in _RENAMED:
        raise UserError(f"{source}: {path} is a setting of fedrecplus before 0.2", f"write {_RENAMED[path]}")
    if path in _GONE:
        check_constant(_GONE[path], value, source, path)
        return config
    section, _, option = _MERGED.get(path, path).rpartition(".")
    if section == "":
        return _change_general(config, option, value, source)
    if section in SECTIONS:
        old = getattr(config, section)
        read = read_setting(SECTIONS[section], option, value, source, f"{section}.")
        if option in constants_of(SECTIONS[section]):  # of a config from before it was a constant
            return config
        return _with(config, section, msgspec.structs.replace(old, **{option: read}))
    if section not in KINDS:
        raise unknown_setting(path, _known_paths(config))
    chosen: Part[Any] = getattr(config, section)
    if option == "rule":
        return _with(config, section, chosen.with_rule(str(value), source))
    own = chosen.settings_type
    if option in constants_of(own):
        read_setting(own, option, value, source, f"{section}.")
        return config
    if option not in {setting.name for setting in settings_of(own)}:
        others = [name for name in choices(KINDS[section]) if option in own_names(section, name)]
        if others:
            raise UnknownName(
                f"{source}: {section}.rule = {chosen.rule!r} has no option {option!r}",
                f"set {section}.rule={others[0]} first, or choose of: "
                + ", ".join(f"{section}.{name}" for name in ("rule", *own_names(section, chosen.rule))),
            )
    read = read_setting(own, option, value, source, f"{section}.")
    return _with(config, section, chosen.with_settings(**{option: read}))


def _with(config: Config, name: str, value: Any) -> Config:
    changes: dict[str, Any] = {name: value}
    return dataclasses.replace(config, **changes)


def own_names(kind: str, rule: str) -> tuple[str, ...]:
    """The names of a part's options."""
    return tuple(setting.name for setting in settings_of(part_class(KINDS[kind], rule).settings_type))


def _change_general(config: Config, option: str, value: Any, source: str) -> Config:
    if option not in {setting.name for setting in settings_of(GeneralSettings)}:
        raise unknown_setting(option, _known_paths(config))
    return _with(config, option, read_setting(GeneralSettings, option, value, source))


def assign(config: Config, assignments: Iterable[str]) -> Config:
    """Apply ``part.option=value`` texts; rules come first, since they bring the options."""
    pairs = []
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment!r} has no '='", "write --set part.option=value")
        pairs.append((path.strip(), value.strip()))
    for path, value in sorted(pairs, key=lambda pair: not pair[0].endswith(".rule")):
        config = change(config, path, value)
    return config


def from_tables(tables: Mapping[str, Any], start: Config | None = None, source: str = "config") -> Config:
    """A config from tables; what they leave out stays as in ``start``."""
    refuse_old(tables, source)
    config = start or Config()
    for name, value in tables.items():
        if not isinstance(value, Mapping):
            if "." in name:  # a quoted key would get past whoever looks for rules in the tables
                raise unknown_setting(name, _known_paths(config))
            config = change(config, name, value, source)
            continue
        for option, inner in sorted(value.items(), key=lambda pair: pair[0] != "rule"):
            config = change(config, f"{name}.{option}", inner, source)
    return config


def refuse_old(tables: Mapping[str, Any], source: str) -> None:
    """Refuse a config of fedrecplus 0.1, before its settings are found to be unknown."""
    for section in _OLD_SECTIONS & set(tables):
        raise UserError(
            f"{source}: [{section}] is of fedrecplus before 0.2, whose settings had other names",
            "read it with fedrecplus 0.1, or write it anew: `fedrecplus settings` lists the names of today",
        )


def to_tables(config: Config) -> dict[str, Any]:
    """A config as plain tables, complete."""
    tables: dict[str, Any] = {}
    for name, value in vars(config).items():
        if isinstance(value, Part):
            tables[name] = {"rule": value.rule, **value.values}
        else:
            tables[name] = msgspec.structs.asdict(value) if isinstance(value, Settings) else value
    return tables


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of plain tables by their dotted names.

    >>> flat(to_tables(Config()))["model.rule"]
    'mf'
    """
    by_path: dict[str, Any] = {}
    for name, value in tables.items():
        inner = {f"{name}.{key}": one for key, one in value.items()} if isinstance(value, Mapping) else {name: value}
        by_path |= inner
    return by_path


def describe(only: str = "") -> Iterator[tuple[str, str, Setting]]:
    """(section, rule, setting) of every setting there is; the rule is empty outside parts.

    ``only`` is a section, a rule, ``section.rule``, or the import path of a rule from outside, which is then imported.

    >>> [setting.name for _, _, setting in describe("aggregation.krum")]
    ['hostile']
    """
    if only in ("", "general"):
        general = settings_of(GeneralSettings)
        yield from (("", "", setting) for setting in general if setting.name != "algorithm")  # a name: nothing follows
    for name, owner in SECTIONS.items():
        if only in ("", name):
            yield from ((name, "", setting) for setting in settings_of(owner))
    for name, kind in KINDS.items():
        if only in ("", name):
            default = getattr(Config(), name).rule
            yield name, "", Setting("rule", default, None, None, f"which {kind.label}", choices(kind))
    for name, rule in _parts_called(only):
        yield from ((name, rule, setting) for setting in settings_of(part_class(KINDS[name], rule).settings_type))


def _parts_called(only: str) -> list[tuple[str, str]]:
    """(kind, rule) of all parts that a name stands for; an error where it stands for nothing."""
    every = [(name, rule) for name, kind in KINDS.items() for rule in choices(kind)]
    called = [(kind, rule) for kind, rule in every if only in ("", kind, rule, f"{kind}.{rule}")]
    if called or only in ("general", *SECTIONS):
        return called
    kind, _, rule = only.partition(".")
    if kind in KINDS:
        return [(kind, KINDS[kind].choose(rule).rule)]
    if is_outside(only):
        return [(kind, only) for kind in kinds_of(only)]
    raise unknown_name("part", only, ["general", *SECTIONS, *KINDS, *(rule for _, rule in every)])


def settings_in(config: Config) -> list[tuple[str, Setting]]:
    """Path and description of every setting that a config has, with the rules that it chose."""
    paths = [(setting.name, setting) for setting in settings_of(GeneralSettings)]
    for name, owner in SECTIONS.items():
        paths += [(f"{name}.{setting.name}", setting) for setting in settings_of(owner)]
    for chosen in config.choices:
        own = settings_of(chosen.settings_type)
        paths += [(f"{chosen.kind}.{setting.name}", setting) for setting in own]
    return paths


def value_of(config: Config, path: str) -> Any:
    """A setting by its name.

    >>> value_of(Config(), "server.rounds"), value_of(Config(), "model.rule")
    (100, 'mf')
    """
    section, _, option = path.rpartition(".")
    owner = getattr(config, section) if section else config
    return getattr(owner.settings if isinstance(owner, Part) and option != "rule" else owner, option)


def _known_paths(config: Config) -> list[str]:
    return [path for path, _ in settings_in(config)] + [f"{chosen.kind}.rule" for chosen in config.choices]
