"""``fedrecplus presets``."""

from __future__ import annotations

from typing import Annotated

import tomli_w
import typer

from fedrecplus.cli.display import plain_console, show_list
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.config import Config, flat, from_tables, preset, preset_summary, presets, settings_in, to_tables
from fedrecplus.files import write_json_to


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
    """The config as TOML, with the meaning of each setting beside it; what has its rule's default is left out."""
    meanings = {path: setting.meaning for path, setting in settings_in(config)}
    meanings |= {f"{chosen.kind}.rule": chosen.summary for chosen in config.choices}
    defaults = flat(to_tables(from_tables({chosen.kind: {"rule": chosen.rule} for chosen in config.choices})))
    defaults |= {f"{chosen.kind}.rule": chosen.rule for chosen in Config().choices}
    lines, begun = [], ""
    for path, value in flat(to_tables(config)).items():
        if value == defaults[path]:
            continue
        section, _, name = path.rpartition(".")
        lines += [f"\n[{section}]"] * (section != begun)
        meaning = f"  # {meanings[path]}" if meanings.get(path) else ""
        lines.append(f"{tomli_w.dumps({name: value}).strip()}{meaning}")
        begun = section
    return "\n".join(lines)
