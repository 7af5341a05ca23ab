"""Whole summaries, and examples that can be pasted, in ``--help``."""

from __future__ import annotations

from typing import Any

_COMMAND = "fedrecplus "
_ON = " \\"
"""a line of the shell that goes on in the next one"""
_NO_LIMIT = 10_000


class WholeHelp:
    """Mixed into a command: no summary is cut off, and no example is wider than the terminal."""

    help: str | None

    def format_help_text(self, context: Any, formatter: Any) -> None:
        """The text between usage and options."""
        written = self.help
        room = formatter.width - 2  # click indents it by two
        self.help = folded_examples(written, room) if written else written
        try:
            super().format_help_text(context, formatter)  # type: ignore[misc]
        finally:
            self.help = written

    def format_commands(self, context: Any, formatter: Any) -> None:
        """The commands of a group, each with its whole summary."""
        names = self.list_commands(context)  # type: ignore[attr-defined]
        commands = [(name, self.get_command(context, name)) for name in names]  # type: ignore[attr-defined]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_NO_LIMIT)) for name, command in commands])


def folded_examples(text: str, width: int) -> str:
    r"""A help text whose lines of ``fedrecplus …`` go on in a next line where they are too long.

    >>> print(folded_examples("Example:\n  fedrecplus train --dataset ml-100k --full", 32))
    Example:
      fedrecplus train \
        --dataset ml-100k --full
    """
    return "\n".join(
        "\n".join(_folded(line, width)) if line.lstrip().startswith(_COMMAND) else line for line in text.splitlines()
    )


def _folded(line: str, width: int) -> list[str]:
    indent = len(line) - len(line.lstrip())
    lines = [line]
    while len(lines[-1]) > width:
        last = lines[-1]
        blank = last.rfind(" --", indent + len(_COMMAND), width - len(_ON) + 1)
        blank = blank if blank > 0 else last.rfind(" ", indent + len(_COMMAND), width - len(_ON) + 1)
        if blank < 0:
            break
        lines[-1:] = [last[:blank] + _ON, " " * (indent + 2) + last[blank + 1 :]]
    return lines
