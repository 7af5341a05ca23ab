"""The ``fedrecplus`` command: its parts, and what happens to errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import click
import typer

from fedrecplus import __version__
from fedrecplus.cli.ablate import ablate_command
from fedrecplus.cli.audit import audit_command
from fedrecplus.cli.compare import compare_command
from fedrecplus.cli.data import data_app
from fedrecplus.cli.demo import demo_command
from fedrecplus.cli.deploy import deploy_app
from fedrecplus.cli.device import device_app
from fedrecplus.cli.interrupt import Interrupted
from fedrecplus.cli.node import node_app
from fedrecplus.cli.presets import presets_command
from fedrecplus.cli.recommend import recommend_command
from fedrecplus.cli.report import report_command
from fedrecplus.cli.server import server_app
from fedrecplus.cli.theory import theory_command
from fedrecplus.cli.train import train_command
from fedrecplus.cli.tune import tune_command
from fedrecplus.errors import UserError, unknown_name

INTERRUPTED = 130
"""exit code after Ctrl-C, as shells have it"""


typer.core.HAS_RICH = False  # help is plain text here, in which typer would leave rich's escapes: "\\[default: 5]"


class Commands(typer.core.TyperGroup):
    """Commands whose misspellings are answered with the nearest name."""

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Find a command by its name."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            raise unknown_name("command", args[0], self.commands)
        return super().resolve_command(context, args)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo_command)
app.command("train")(train_command)
app.command("compare")(compare_command)
app.command("ablate")(ablate_command)
app.command("audit")(audit_command)
app.command("theory")(theory_command)
app.command("report")(report_command)
app.command("tune")(tune_command)
app.command("recommend")(recommend_command)
app.command("presets")(presets_command)
app.add_typer(data_app, name="data", cls=Commands)
for name, commands in {"device": device_app, "node": node_app, "server": server_app, "deploy": deploy_app}.items():
    app.add_typer(commands, name=name, cls=Commands)


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
      fedrecplus demo                                          five algorithms on MovieLens-100K
      fedrecplus train --dataset ml-100k --algorithm fedrec+   one training
      fedrecplus recommend RUN-FOLDER --client 196             its top ten for a client
      fedrecplus presets                                       the algorithms
    """


def run() -> None:
    """Run the command line; what a user can put right is said without a traceback."""
    sys.exit(exit_code_of(sys.argv[1:]))


def exit_code_of(arguments: list[str]) -> int:
    """Run one command and say how it ended: 0, 2 for what the user can put right, 130 after Ctrl-C."""
    try:
        code = app(arguments, prog_name="fedrecplus", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UserError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except click.ClickException as error:
        error.show()
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
