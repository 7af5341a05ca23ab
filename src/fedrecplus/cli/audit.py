"""``fedrecplus audit``."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from fedrecplus import audit
from fedrecplus.audit.attacks import Attack
from fedrecplus.cli import options as shared
from fedrecplus.cli.declaring import names_in, whole_numbers_in
from fedrecplus.cli.display import say, show_cases, show_table
from fedrecplus.config import Config, change, check, dumps, with_channel
from fedrecplus.data import FileOptions, Ratings, split
from fedrecplus.engines import prepare
from fedrecplus.errors import UserError
from fedrecplus.parts import choices
from fedrecplus.provenance import Stopwatch

_WIDTH = 79


class Control(enum.StrEnum):
    """Whose uploads an attack is controlled by."""

    SWAP = "swap"
    WORLDS = "worlds"


@shared.reads_own_files
def audit_command(
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")],
    algorithms: Annotated[
        str, typer.Option("--algorithm", metavar="A,B,…", help="Presets, TOML files, or folders of runs.")
    ],
    rounds: Annotated[int, typer.Option(min=1, help="Rounds that the server records.")] = 20,
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
    canaries: Annotated[
        int,
        typer.Option(min=0, help="Canary clients that test the claimed ε of schemes that have one; 1000 are many."),
    ] = 0,
    published: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A published model of these ratings: what does its file give away?"),
    ] = None,
    cohort: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", help="People in a round, drawn anew for each: a case for every number."),
    ] = None,
    fold: Annotated[int, typer.Option(min=0, help="Which of five folds to test predictions on.")] = 0,
    seed: shared.Seed = None,
    channel: shared.Channel = None,
    rows_sent: shared.Rows = None,
    settings: shared.Settings = None,
    allow: shared.Allow = None,
    details: Annotated[bool, typer.Option("--details", help="Every attack and figure, in a wide table.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Cases side by side; 0: one per core.")] = 0,
    json_file: shared.JsonFile = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="A page with figures of accuracy against attack.")
    ] = None,
    *,
    options: FileOptions,
) -> None:
    """Attack what clients upload, and say how much of their ratings a curious server learns.

    \b
    Examples:
      fedrecplus audit --dataset ml-100k --algorithm fedmf,fedrec,fedrec+,fedrec+private
      fedrecplus audit --dataset ml-100k --algorithm fedrec+ --set pseudo_items.ratio=3 --users 50 --json leaks.json

    A scheme with local epochs is trained and attacked with one of them and with its own number. `AUC` is how well rated
    rows are told from pseudo rows, or rated items from unrated ones as popular where no pseudo row is seen: .5 is
    chance, 1 is certainty. `ratings` is the share of ratings read exactly. `control` is what the attack gets with
    somebody else's uploads in the place of the person's own. `fedrecplus settings attack` lists attacks' options.
    """
    shared.check_file_place(json_file, html_file)
    watch = Stopwatch()
    second = None if knowing is None else shared.load_with_bar(knowing, options)
    extent = audit.AuditExtent(
        rounds, users, _names(attacks), audit.options_of(attack_settings or []), second, control.value
    )
    _ = extent.chosen  # misspellings are found before anything is trained
    sizes = whole_numbers_in(cohort, "--cohort", "10,28,100")
    configs = _configs(names_in(algorithms), (channel, rows_sent), settings or [], seed, allow or ())
    cases = audit.audit_cases(configs)  # what can't be audited is found before data is fetched
    ratings = shared.load_with_bar(dataset, options)
    training, test = split(ratings, fold, seed=seed or 0)
    from_file = None if published is None else audit.read_in_file(published, ratings, training)
    if sizes:
        cases = audit.audit_cases(_with_cohorts(configs, sizes, int((np.diff(training.indptr) > 0).sum())))
    if second is not None:
        audit.joined(second, training)  # other items are found before anything is trained
    shown = _shown_by_canaries(cases, training, canaries)
    with show_cases(cases) as tell:
        rows = audit.run_cases(cases, training, test, extent, workers, tell)
    _show(rows, training.name, details)
    content = {"dataset": training.name, "fold": fold, "users": users, "rounds": rounds, "rows": rows}
    content |= {"control": control.value, "canaries": shown, "published": from_file}
    if from_file is not None:
        say(audit.file_sentence(from_file))
    for label, bound in shown.items():
        say(textwrap.fill(f"{label}: {audit.canary_sentence(bound)}", _WIDTH, subsequent_indent="  "))
    content["knowing"] = None if second is None else second.name
    content["configs"] = {case.label: dumps(case.config) for case in cases}
    content["made"] = watch.made(seed or 0)
    shared.write_files(content, json_file, html_file, {}, training.name)


def _names(attacks: str | None) -> tuple[str, ...]:
    """The attacks that were asked for; none means all, and an empty list is a slip."""
    if attacks is not None and not names_in(attacks):
        raise UserError("--attacks names no attack", "leave it out for all, or name some: --attacks popularity,shadow")
    return tuple(names_in(attacks))


def _show(rows: Sequence[audit.Row], dataset: str, details: bool) -> None:
    """The verdict first, then who reads what; every attack, if asked for."""
    for case in audit.rows_by_case(rows):
        for text in textwrap.wrap(audit.verdict_sentence(case), _WIDTH, subsequent_indent="  "):
            say(text)
    for case in audit.rows_by_case(rows):
        if cells := audit.who_reads_what(case):
            say("")
            show_table(audit.VERDICT_HEADINGS, cells, audit.case_name(case[0]))
    if details:
        say("")
        show_table(audit.AUDIT_HEADINGS, [audit.table_line(row) for row in rows], dataset)
        for text in audit.summary(rows):
            say(text)
    else:
        say("\nEvery attack: --details. All figures: --json FILE.")


def _shown_by_canaries(cases: Sequence[audit.AuditCase], training: Ratings, canaries: int) -> dict[str, Any]:
    """By case, what canaries show of the claimed ε; nothing where none are asked for."""
    if not canaries:
        return {}
    if not any(audit.claims_epsilon(case.config) for case in cases):
        raise UserError("--canaries: no scheme here claims an ε", "add --set privacy.rule=central, or leave it out")
    return {
        case.label: audit.audited_by_canaries(prepare(training, case.config), canaries)
        for case in cases
        if audit.claims_epsilon(case.config)
    }


def _with_cohorts(configs: dict[str, Config], sizes: Sequence[int], people: int) -> dict[str, Config]:
    """Every scheme with every size of cohort."""
    if not 0 < min(sizes) <= max(sizes) <= people:
        raise UserError(f"--cohort: {people} people have ratings", f"give numbers from 1 to {people}")
    return {
        f"{name}, {size} people": check(change(config, "cohort.fraction", size / people, "--cohort"))
        for name, config in configs.items()
        for size in sizes
    }


def _configs(
    names: Sequence[str],
    sent: tuple[str | None, str | None],
    settings: Sequence[str],
    seed: int | None,
    allow: Sequence[str],
) -> dict[str, Config]:
    configs: dict[str, Config] = {}
    for name in names:
        config = shared.changed(with_channel(shared.config_of(name, allow), *sent), seed, settings)
        own = name if config.algorithm in configs else config.algorithm  # two runs of one algorithm go by their folders
        configs[own] = config
    return configs
