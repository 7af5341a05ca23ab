"""``--help`` in a terminal of 80 columns: nothing cut off, nothing too wide, examples that can be pasted."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterator
from typing import Any

import click
import pytest
import typer

from fedrecplus.cli.main import app

WIDTH = 80
GROUP: Any = typer.main.get_command(app)


def commands(command: Any = GROUP, name: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command's words, the groups' too."""
    yield name
    if isinstance(command, click.Group):
        context = click.Context(command)
        for inner in command.list_commands(context):
            yield from commands(command.get_command(context, inner), (*name, inner))


def command_of(name: tuple[str, ...]) -> Any:
    found = GROUP
    for word in name:
        found = found.get_command(click.Context(found), word)
    return found


@functools.cache
def help_of(name: tuple[str, ...], width: int = WIDTH) -> str:
    context = click.Context(command_of(name), info_name=" ".join(("fedrecplus", *name)), terminal_width=width)
    return command_of(name).get_help(context)


@pytest.mark.parametrize("name", list(commands()), ids=" ".join)
def test_no_line_is_wider_than_the_terminal(name: tuple[str, ...]) -> None:
    assert [line for line in help_of(name).splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize(
    "name", [each for each in commands() if isinstance(command_of(each), click.Group)], ids=" ".join
)
def test_summaries_are_whole(name: tuple[str, ...]) -> None:
    listed = help_of(name).partition("Commands:")[2]
    assert listed
    assert "..." not in listed
    assert "…" not in listed


@pytest.mark.parametrize("name", list(commands()), ids=" ".join)
def test_examples_can_be_pasted(name: tuple[str, ...]) -> None:
    """Put together by the shell's rules, each names a command, and only options that it has."""
    text = help_of(name).replace("\\\n", "")
    for line in text.splitlines():
        if not line.startswith("    fedrecplus "):
            continue
        _, *words = shlex.split(line.partition(" > ")[0], comments=True)
        path: tuple[str, ...] = ()
        while words and isinstance(command_of(path), click.Group) and not words[0].startswith("-"):
            path = (*path, words.pop(0))
        known = {option for each in command_of(path).params for option in (*each.opts, *each.secondary_opts)}
        used = {word.partition("=")[0] for word in words if word.startswith("-") and not word[1:].isdigit()}
        assert used <= known | {"--help", "-h"}, line
