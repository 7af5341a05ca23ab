"""Writes pages before the site is built: settings.md from the parts, commands.md from the command line.

Pages with diagrams load mermaid from the site itself: the theme would fetch it from a third party.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import typer
from mkdocs.utils import get_relative_url

from fedrecplus.cli.main import COMMANDS, app
from fedrecplus.config import describe
from fedrecplus.markdown import markdown_table
from fedrecplus.parts import KINDS, built_in, part_class, summary_of
from fedrecplus.settings import Setting, value_text

_HEAD = """\
# Settings

Every setting with its default, range and meaning, to look up. `fedrecplus settings` prints the same, with the rules of
other installed packages, and `fedrecplus presets NAME` shows what a preset sets.

The setting `option` of the section `part` is called `part.option`: in TOML `[part]` and `option = value`, on the
command line `--set part.option=value`, in Python `change(config, "part.option", value)`. `rule` chooses a part, which
has its own options.

"""
_COMMANDS_HEAD = """\
# Commands

Every command with its options and examples, as `fedrecplus COMMAND --help` prints them.

"""
_WIDTH = 80
_MERMAID = "assets/mermaid.tiny.js"
_COLUMNS = ["setting", "default", "range", "meaning"]


def on_pre_build(config: Any) -> None:
    """Called by mkdocs before it collects the pages. An unchanged page is not written: `mkdocs serve` watches it."""
    for name, text in (("settings.md", settings_page()), ("commands.md", commands_page())):
        page = Path(config["docs_dir"]) / name
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Called by mkdocs for each page. The theme takes a mermaid that is there before its own script runs."""
    if 'class="mermaid"' not in output:
        return output
    script = f'<script src="{get_relative_url(_MERMAID, page.url)}"></script>'
    return output.replace("</head>", f"{script}</head>", 1)


def settings_page() -> str:
    """The whole page as Markdown."""
    text = _HEAD
    described = [each for each in describe() if each[0] not in KINDS]
    for section, group in itertools.groupby(described, key=lambda each: each[0]):
        text += f"## {section or 'general'}\n\n{_table(setting for _, _, setting in group)}\n"
    for kind, known in KINDS.items():
        text += f"## {kind}\n\n"
        for rule in built_in(known):
            settings = [setting for _, _, setting in describe(f"{kind}.{rule}")]
            text += f"### {kind}: {rule}\n\n{summary_of(part_class(known, rule))}\n\n"
            text += f"{_table(settings)}\n" if settings else "No settings.\n\n"
    return text.rstrip() + "\n"


def commands_page() -> str:
    """Every command's help, as the command line prints it."""
    group: Any = typer.main.get_command(app)
    text = _COMMANDS_HEAD + _help(group, "fedrecplus")
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        text += f"## {name}\n\n{_help(command, f'fedrecplus {name}')}"
        inner: dict[str, Any] = getattr(command, "commands", {})
        for below, one in inner.items():
            text += f"### {name} {below}\n\n{_help(one, f'fedrecplus {name} {below}')}"
    return text.rstrip() + "\n"


def _help(command: Any, name: str) -> str:
    """One command's help, indented as a block of code."""
    context = click.Context(command, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH)
    lines = command.get_help(context).splitlines()
    return "".join(f"    {line}".rstrip() + "\n" for line in lines) + "\n"


def _table(settings: Iterable[Setting]) -> str:
    rows = [[f"`{each.name}`", _value(each.default), _range(each), _cell(each.meaning)] for each in settings]
    return markdown_table(_COLUMNS, rows)


def _range(setting: Setting) -> str:
    if setting.values:
        return ", ".join(f"`{value}`" for value in setting.values)
    return setting.range


def _value(value: Any) -> str:
    return f"`{value_text(value)}`"


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
