"""``fedrecplus settings``: everything that can be set, from what the parts say of themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from fedrecplus.audit.attacks import Attack
from fedrecplus.cli.display import plain_console, say, show_list
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.config import describe
from fedrecplus.files import write_json_to
from fedrecplus.parts import KINDS, choices, part_class, summary_of
from fedrecplus.settings import Setting, settings_of, value_text


def settings_command(
    only: Annotated[
        str,
        typer.Argument(
            metavar="[PART]",
            help="A kind of part, a rule, KIND.RULE, or the import path of a rule of your own. Default: all.",
        ),
    ] = "",
    json_file: JsonFile = None,
) -> None:
    """List every setting by part and rule: its name, meaning, and [default; range].

    \b
    Examples:
      fedrecplus settings pseudo_items           # all rules for pseudo items
      fedrecplus settings model.mf               # one rule
      fedrecplus settings attack                 # options of the audit's attacks
      fedrecplus settings attack.two-models      # those of one
      fedrecplus settings my_package.my_rule     # a rule of your own
      fedrecplus settings --json settings.json

    A setting of part KIND.RULE is changed by --set KIND.OPTION=VALUE, after --set KIND.rule=RULE; that of an attack by
    audit --attack-set ATTACK.OPTION=VALUE.
    """
    check_file_place(json_file)
    described = list(describe_attacks(only)) if only.partition(".")[0] == Attack.kind else list(describe(only))
    write_json_to(json_file, {"settings": [_as_dict(*each) for each in described]})
    if not described:
        say(f"{only} has no settings")
    for (section, rule), group in itertools.groupby(described, key=lambda each: each[:2]):
        kind = Attack if section == Attack.kind else KINDS.get(section)
        summary = f": {summary_of(part_class(kind, rule))}" if kind and rule else ""
        plain_console().print(f"{_part_name(section, rule)}{summary}")
        show_list([(f"  {setting.name}", _in_words(setting)) for _, _, setting in group], folded=True)
        say("")


def describe_attacks(only: str) -> Iterator[tuple[str, str, Setting]]:
    """(attack, name, setting) of every attack's options, or of one attack's: ``attack`` or ``attack.NAME``."""
    name = only.partition(".")[2]
    for attack in [name] if name else choices(Attack):
        yield from ((Attack.kind, attack, setting) for setting in settings_of(part_class(Attack, attack).settings_type))


def _as_dict(section: str, rule: str, setting: Setting) -> dict[str, Any]:
    described = {"name": setting.name, "default": setting.default, "low": setting.low, "high": setting.high}
    return {"part": _part_name(section, rule), **described, "values": setting.values, "meaning": setting.meaning}


def _part_name(section: str, rule: str) -> str:
    return f"{section}.{rule}" if rule else section or "general"


def _in_words(setting: Setting) -> str:
    return f"{setting.meaning} [{'; '.join(filter(None, (value_text(setting.default), setting.range)))}]"
