"""``fedrecplus audit``."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from fedrecplus.audit.attacks import Attack
from fedrecplus.audit.audit import AuditCase, AuditExtent, cases, options_of, run
from fedrecplus.audit.second_data import joined
from fedrecplus.audit.tables import HEADINGS, line, summary
from fedrecplus.cli.display import plain_console, say, show_table
from fedrecplus.cli.options import (
    Allow,
    Channel,
    JsonFile,
    Rows,
    Seed,
    Settings,
    check_file_place,
    config_of,
    load_with_bar,
    names_in,
    reads_own_files,
)
from fedrecplus.config import Config, assign, change, check, dumps, with_channel
from fedrecplus.data import FileOptions, split
from fedrecplus.errors import UserError
from fedrecplus.files import write_json_to, write_text
from fedrecplus.parts import choices
from fedrecplus.provenance import Stopwatch

Tell = Callable[[AuditCase, str, float], None]


class Control(enum.StrEnum):
    """Whose uploads an attack is controlled by."""

    SWAP = "swap"
    WORLDS = "worlds"


@reads_own_files
def audit_command(
    schemes: Annotated[
        list[str], typer.Argument(metavar="RUN-OR-PRESET…", help="Presets, TOML files, or folders of runs.")
    ],
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that the server takes notes of.")] = 20,
    users: Annotated[int, typer.Option(min=1, help="Clients that are attacked.")] = 200,
    attacks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help=f"Only these: {', '.join(choices(Attack))}, or the import path of your own. Default: all.",
        ),
    ] = None,
    attack_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--attack-set", metavar="ATTACK.OPTION=VALUE", help="Change an attack's own setting; may be repeated."
        ),
    ] = None,
    knowing: Annotated[
        str | None,
        typer.Option(
            metavar="NAME-OR-FILE",
            help="Ratings of the same items by other people, which the attacker has: joined by title or id.",
        ),
    ] = None,
    control: Annotated[
        Control,
        typer.Option(
            help="Somebody else's uploads in the place of a person's (swap), or a training for each person, in which "
            "somebody else's ratings were in that place all the time, in statistics too (worlds: few --users).",
        ),
    ] = Control.SWAP,
    fold: Annotated[int, typer.Option(min=0, help="Which of five folds to test predictions on.")] = 0,
    seed: Seed = None,
    channel: Channel = None,
    rows_sent: Rows = None,
    settings: Settings = None,
    allow: Allow = None,
    workers: Annotated[int, typer.Option(min=0, help="Cases side by side; 0: one per core.")] = 0,
    json_file: JsonFile = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="A page with figures of accuracy against attack.")
    ] = None,
    *,
    options: FileOptions,
) -> None:
    """Attack what clients upload, and say how much of their ratings a curious server learns.

    \b
    Examples:
      fedrecplus audit fedmf fedrec fedrec+ fedrec+private --dataset ml-100k
      fedrecplus audit fedrec+ --dataset ml-100k --set pseudo_items.ratio=3 --users 50 --json leaks.json

    A scheme with local epochs is trained and attacked with one of them and with its own number. `AUC` is how well rated
    rows are told from pseudo rows, or rated items from unrated ones as popular where no pseudo row is seen: .5 is
    chance, 1 is certainty. `ratings` is the share of ratings read exactly. `control` is what the attack gets with
    somebody else's uploads in the place of the person's own. `fedrecplus settings attack` lists attacks' options.
    """
    check_file_place(json_file, html_file)
    watch = Stopwatch()
    second = None if knowing is None else load_with_bar(knowing, options)
    extent = AuditExtent(rounds, users, _names(attacks), options_of(attack_settings or []), second, control.value)
    _ = extent.chosen  # misspellings are found before anything is trained
    found = cases(_configs(schemes, (channel, rows_sent), settings or [], seed, allow or ()))
    training, test = split(load_with_bar(dataset, options), fold, seed=seed or 0)
    if second is not None:
        joined(second, training)  # other items are found before anything is trained
    with _bars(found) as tell:
        rows = run(found, training, test, extent, workers, tell)
    show_table(HEADINGS, [line(row) for row in rows], training.name)
    for text in summary(rows):
        say(text)
    content = {"dataset": training.name, "fold": fold, "users": users, "rounds": rounds, "rows": rows}
    content["control"] = control.value
    content["knowing"] = None if second is None else second.name
    content["configs"] = {case.label: dumps(case.config) for case in found}
    content["made"] = watch.made(seed or 0)
    write_json_to(json_file, content)
    if html_file:
        from fedrecplus.web.report.build import page_of  # here: only pages need it

        write_text(html_file, page_of([content], training.name))


def _names(attacks: str | None) -> tuple[str, ...]:
    """The attacks that were asked for; none means all, and an empty list is a slip."""
    if attacks is not None and not names_in(attacks):
        raise UserError("--attacks names no attack", "leave it out for all, or name some: --attacks popularity,shadow")
    return tuple(names_in(attacks))


def _configs(
    names: Sequence[str],
    sent: tuple[str | None, str | None],
    settings: Sequence[str],
    seed: int | None,
    allow: Sequence[str],
) -> dict[str, Config]:
    configs = {}
    for name in names:
        config = assign(with_channel(config_of(name, allow), *sent), settings)
        own = name if config.algorithm in configs else config.algorithm  # two runs of one algorithm go by their folders
        configs[own] = check(config if seed is None else change(config, "seed", seed, "--seed"))
    return configs


@contextlib.contextmanager
def _bars(found: Sequence[AuditCase]) -> Iterator[Tell]:
    """A bar per case in a terminal; elsewhere a line per case when it is done."""
    console = plain_console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {case.label: bars.add_task(case.label, total=1.0, what="") for case in found}

        def tell(case: AuditCase, what: str, share: float) -> None:
            bars.update(tasks[case.label], completed=share, what=what)
            if share >= 1.0 and not console.is_terminal:
                console.print(f"{case.label}: {what}", soft_wrap=True)

        yield tell
