"""``fedrecplus presets``."""

from __future__ import annotations

from typing import Annotated, Any

import tomli_w
import typer

from fedrecplus.cli.display import plain_console, show_list
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.config import Config, from_tables, preset, preset_summary, presets, settings_in, to_tables
from fedrecplus.files import write_json_to
from fedrecplus.parts import KINDS


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show the settings of this one.")] = None,
    json_file: JsonFile = None,
) -> None:
    """List the algorithms, or show what one sets, with its meaning; all else is as `fedrecplus settings` has it.

    \b
    What is shown is a config file, ready to be changed and used:
      fedrecplus presets fedrec+ > my.toml
      fedrecplus train --dataset ml-100k --algorithm my.toml
    """
    check_file_place(json_file)
    if name is not None:
        write_json_to(json_file, to_tables(preset(name)))
        plain_console().print(explained(preset(name)), soft_wrap=True)  # a file, in which no line may be folded
        return
    known = [(known, preset_summary(known)) for known in presets()]
    write_json_to(json_file, {"presets": [{"name": one, "summary": summary} for one, summary in known]})
    show_list(known)


def explained(config: Config) -> str:
    """The config as TOML, with the meaning of each setting beside it; what has its default is left out."""
    meanings = {path: setting.meaning for path, setting in settings_in(config)}
    meanings |= {f"{chosen.kind}.rule": chosen.summary for chosen in config.choices}
    lines: list[str] = []

    def add(path: str, name: str, value: Any) -> None:
        meaning = f"  # {meanings[path]}" if meanings.get(path) else ""
        lines.append(f"{tomli_w.dumps({name: value}).strip()}{meaning}")

    for name, value in to_tables(config).items():
        if not isinstance(value, dict):
            if value != getattr(Config(), name):
                add(name, name, value)
            continue
        defaults = default_table(config, name)
        changed = {option: inner for option, inner in value.items() if inner != defaults[option]}
        lines += [f"\n[{name}]"] * bool(changed)
        for option, inner in changed.items():
            add(f"{name}.{option}", option, inner)
    return "\n".join(lines)


def default_table(config: Config, section: str) -> dict[str, Any]:
    """What a section has where nothing is said but the rule."""
    plain: dict[str, Any] = to_tables(Config())[section]
    if section not in KINDS:
        return plain
    chosen: dict[str, Any] = to_tables(from_tables({section: {"rule": getattr(config, section).rule}}))[section]
    return {**chosen, "rule": plain["rule"]}
