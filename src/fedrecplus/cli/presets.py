"""``fedrecplus presets``."""

from __future__ import annotations

from typing import Annotated, Any

import tomli_w
import typer

from fedrecplus.cli.display import say, show_list
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.config import Config, preset, preset_summary, presets, settings_in, to_tables
from fedrecplus.files import write_json_to


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show all settings of this one.")] = None,
    json_file: JsonFile = None,
) -> None:
    """List the algorithms, or show every setting of one with its meaning.

    \b
    What is shown is a config file, ready to be changed and used:
      fedrecplus presets fedrec+ > my.toml
      fedrecplus train --dataset ml-100k --algorithm my.toml
    """
    check_file_place(json_file)
    if name is not None:
        write_json_to(json_file, to_tables(preset(name)))
        say(explained(preset(name)))
        return
    known = [(known, preset_summary(known)) for known in presets()]
    write_json_to(json_file, {"presets": [{"name": one, "summary": summary} for one, summary in known]})
    show_list(known)


def explained(config: Config) -> str:
    """The config as TOML, with the meaning of each setting beside it."""
    meanings = {path: setting.meaning for path, setting in settings_in(config)}
    meanings |= {f"{chosen.kind}.rule": chosen.summary for chosen in config.choices}
    lines: list[str] = []

    def add(path: str, name: str, value: Any) -> None:
        meaning = f"  # {meanings[path]}" if meanings.get(path) else ""
        lines.append(f"{tomli_w.dumps({name: value}).strip()}{meaning}")

    for name, value in to_tables(config).items():
        if not isinstance(value, dict):
            add(name, name, value)
            continue
        lines.append(f"\n[{name}]")
        for option, inner in value.items():
            add(f"{name}.{option}", option, inner)
    return "\n".join(lines)
