"""The ``fedrecplus`` command: its parts, and what happens to errors."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import sys
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

import click
import typer

from fedrecplus import __version__
from fedrecplus.cli.interrupt import Interrupted
from fedrecplus.errors import DataWarning, EngineWarning, UserError, unknown_name
from fedrecplus.terminal import printable

INTERRUPTED = 130
"""exit code after Ctrl-C, as shells have it"""
COMMANDS = {
    "demo": "Train six algorithms on MovieLens-100K, and set them beside what others published.",
    "train": "Train one algorithm and test it on the fold that was left out.",
    "compare": "Train several algorithms on the same folds and say whether they differ.",
    "benchmark": "Run a benchmark that papers use, beside what they published.",
    "ablate": "Vary settings of a preset, and say what they are worth.",
    "family": "Train the paper's algorithms under equal settings.",
    "audit": "Attack what clients upload, and say how much a curious server learns.",
    "privacy": "Say what a run has spent of its privacy budget.",
    "theory": "Set the paper's convergence theorem beside a run.",
    "report": "Make one page of runs and studies.",
    "page": "Make the page on which a person rates and sees what would leave.",
    "tune": "Search for settings with a lower error.",
    "recommend": "Show the items that a client hasn't rated and would like best.",
    "publish": "Put a run's model into a registry and make it the current one.",
    "models": "List the models of a registry.",
    "rollback": "Make an earlier model of a registry the current one.",
    "serve": "Serve a run's model, or a registry's current one, over HTTP.",
    "presets": "List the algorithms, or show every setting of one.",
    "settings": "List every setting, with its default, range and meaning.",
    "data": "Data sets: list, fetch, look into.",
    "cluster": "Training on several machines: how to start, and what they do.",
    "device": "Your ratings, on your own disk.",
    "join": "Take part by an invitation, in one line.",
    "node": "A device or a silo that takes part.",
    "server": "The machine that nodes connect to.",
    "deploy": "Training across real machines.",
}
"""the module ``cli/NAME.py`` has ``NAME_command`` or ``NAME_app``; it is imported when the command is used"""
_TOGETHER = {"publish": "registry", "models": "registry", "rollback": "registry", "demo": "compare"}
"""commands that share a module"""
_COMMAND = "fedrecplus "
_ON = " \\"
"""a line of the shell that goes on in the next one"""
_NO_LIMIT = 10_000

typer.core.HAS_RICH = False  # help is plain text here, in which typer would leave rich's escapes: "\\[default: 5]"


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


class Commands(WholeHelp, typer.core.TyperGroup):
    """Commands whose misspellings are answered with the nearest name."""

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Find a command by its name."""
        known = self.list_commands(context)
        if args and not args[0].startswith("-") and args[0] not in known:
            raise unknown_name("command", args[0], known)
        return super().resolve_command(context, args)


class Command(WholeHelp, typer.core.TyperCommand):
    """A command in which ``--json`` without a file means standard output."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        if any(parameter.name == "json_file" for parameter in self.params):
            alone = [one == "--json" and after.startswith("--") for one, after in pairwise([*args, "--"])]
            args = [word for one, bare in zip(args, alone, strict=True) for word in ((one, "-") if bare else (one,))]
        return super().parse_args(context, args)


class LazyCommands(Commands):
    """Commands that are imported when they are used: ``--help`` and ``presets`` must not wait for numba."""

    def list_commands(self, context: Any) -> list[str]:
        """Their names."""
        return list(COMMANDS)

    def get_command(self, context: Any, name: str) -> Any:
        """One of them, imported."""
        if name not in COMMANDS:
            return None
        module, parent = (
            importlib.import_module(f"fedrecplus.cli.{_TOGETHER.get(name, name)}"),
            typer.Typer(add_completion=False),
        )
        if own := getattr(module, f"{name}_app", None):
            for command in own.registered_commands:
                command.cls = Command
            parent.add_typer(own, name=name, cls=Commands)
        else:
            parent.command(name, cls=Command)(getattr(module, f"{name}_command"))
        built = typer.main.get_command(parent)
        return built.commands[name] if isinstance(built, typer.core.TyperGroup) else built

    def format_commands(self, context: Any, formatter: Any) -> None:
        """What ``--help`` lists."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedrecplus {__version__}")
        raise typer.Exit


@app.callback()
def fedrecplus(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train recommenders across devices that keep their ratings, and compare how well that goes.

    \b
    Start with:
      fedrecplus demo       # a comparison on MovieLens-100K
      fedrecplus train --dataset ml-100k --out runs/first
      fedrecplus recommend runs/first --client 196   # its top ten
      fedrecplus presets    # the algorithms
      fedrecplus settings   # everything that --set can change
    """


def run() -> None:
    """Run the command line; what a user can put right is said without a traceback."""
    for stream in (sys.stdout, sys.stderr):  # Windows writes to files and pipes in a code page that lacks most letters
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    gc.set_threshold(50_000, 20, 20)  # imports make many objects that stay: to look at them again and again takes .2 s
    code = exit_code_of(sys.argv[1:])
    if "triton" not in sys.modules:  # which complains of objects that are left
        gc.freeze()  # the process ends: nobody needs to look for cycles in what numba made, which takes another .2 s
    sys.exit(code)


@contextlib.contextmanager
def _notes_on_stderr() -> Iterator[None]:
    """What reading data and engines warn of is a line for the user, without the file and line of our code."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.simplefilter("always", EngineWarning)
        plain = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, DataWarning | EngineWarning):
                click.echo(f"note: {printable(str(message))}", err=True)
            else:
                plain(message, category, *place, **more)

        warnings.showwarning = show
        yield


def _say_where_data_go(error: click.ClickException) -> None:
    """To who names ratings without the option, as commands of other programs are called."""
    command = error.ctx.command if isinstance(error, click.UsageError) and error.ctx else None
    takes_data = command is not None and any("--dataset" in option.opts for option in command.params)
    if takes_data and "unexpected extra argument" in error.message:
        click.echo("  → name the ratings by an option: --dataset NAME-OR-FILE", err=True)


def exit_code_of(arguments: list[str]) -> int:
    """Run one command and say how it ended: 0, 2 for what the user can put right, 130 after Ctrl-C."""
    try:
        with _notes_on_stderr():
            code = app(arguments, prog_name="fedrecplus", standalone_mode=False)
        if code == INTERRUPTED:  # Typer's own answer to Ctrl-C, which says nothing
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except UserError as error:
        click.echo(f"error: {printable(error.for_shell)}", err=True)
        return 2
    except click.ClickException as error:
        error.show()
        _say_where_data_go(error)
        return error.exit_code
    except Interrupted as stopped:
        click.echo(f"stopped: {stopped}", err=True)
        return INTERRUPTED
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of a pipe has seen enough; keep the interpreter from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        databases = sys.modules.get("sqlalchemy.exc")  # imported by whatever command uses one
        if databases is None or not isinstance(error, databases.DBAPIError):
            raise
        problem = f"the server's database: {(str(error.orig).splitlines() or [''])[0]}"
        click.echo(f"error: {printable(problem)}\n  → see `fedrecplus server status`", err=True)
        return 2
