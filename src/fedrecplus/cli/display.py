"""What commands show: tables on standard output, unless that is for JSON, and progress on standard error."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress as Bars,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from fedrecplus.cli.interrupt import stop_on_interrupt
from fedrecplus.files import STDOUT
from fedrecplus.terminal import printable

if TYPE_CHECKING:
    from fedrecplus.audit import AuditCase
    from fedrecplus.experiments import Job, JobOutcome, Moment, Monitor
    from fedrecplus.training import Progress, Step

_PIPED_WIDTH = 500
_NAME_WIDTH = 24
"""so much of a name stays on one line"""


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that shows text as it is: a scale such as 0:100:1 is no emoji, a name in brackets no markup."""
    height = None if width is None else 25  # a width alone means nothing to rich in a terminal that calls itself dumb
    stderr = stderr or _json_on_stdout()
    return Console(stderr=stderr, width=width, height=height, markup=False, emoji=False, highlight=False)


def _json_on_stdout() -> bool:
    """Whether the command that runs was called with ``--json -``."""
    context = click.get_current_context(silent=True)
    return context is not None and str(context.params.get("json_file")) == str(STDOUT)


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    spare: Sequence[str] = (),
    words: Sequence[str] = (),
    names: int = 1,
) -> bool:
    """Names and figures. Piped, a table is as wide as it needs to be: names are never cut.

    Columns of ``words`` are text, folded like the names in the first column. So many columns as ``names`` says name
    a row.

    In a terminal that is too narrow, ``spare`` columns are left out and long names folded; of what is still too wide,
    columns that have no room follow below, with the names again. Says whether every column is there.
    """
    rows = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    console = plain_console()
    room = console.width if console.is_terminal else _PIPED_WIDTH
    columns = list(zip(headings, *rows, strict=True))
    whole = _least_width(columns, words) <= room
    if not whole:
        columns = [column for column in columns if column[0] not in spare]
    for place, block in enumerate(_blocks(columns, room, words, names)):
        if place:
            say("")
        _print_table(block, "" if place else title, words, room)
    return whole


def _blocks(columns: Sequence[Sequence[str]], room: int, words: Sequence[str], names: int) -> list[list[Sequence[str]]]:
    """Columns in groups that have room, each beginning with the names; as many in each, so that none stands alone."""
    own, others = columns[:names], columns[names:]
    blocks = [list(own)]
    for count in range(1, len(others) + 1):
        ends = [len(others) * place // count for place in range(count + 1)]
        blocks = [[*own, *others[first:last]] for first, last in pairwise(ends)]
        if all(_least_width(block, words) <= room for block in blocks):
            break
    return blocks


def _print_table(columns: Sequence[Sequence[str]], title: str, words: Sequence[str], room: int) -> None:
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column(columns[0][0], overflow="fold")
    for heading, *_ in columns[1:]:
        if heading in words:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*row)
    plain_console(width=max(room, _least_width(columns, words))).print(table)


def _least_width(columns: Sequence[Sequence[str]], words: Sequence[str]) -> int:
    """What a table needs, with two blanks between columns and long names and words folded."""
    widths = [max(len(cell) for cell in column) for column in columns]
    foldable = [place == 0 or column[0] in words for place, column in enumerate(columns)]
    folded = [min(width, _NAME_WIDTH) if may else width for width, may in zip(widths, foldable, strict=True)]
    return sum(folded) + 2 * (len(folded) - 1)


def show_list(pairs: Sequence[tuple[str, str]], *, folded: bool = False) -> None:
    """Names and what they mean, folded to the terminal's width; with ``folded`` also where there is none."""
    console = plain_console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for pair in pairs:
        table.add_row(*pair)
    plain_console(width=None if folded or console.is_terminal else _PIPED_WIDTH).print(table)


def say(text: str) -> None:
    """A line on standard output; in a terminal it is folded between words."""
    _print(plain_console(), text)


def tell(text: str) -> None:
    """The same on standard error: what is no part of the figures."""
    _print(plain_console(stderr=True), text)


def _print(console: Console, text: str) -> None:
    console.print(printable(text), soft_wrap=not console.is_terminal)


class _Bars:
    """Progress bars by name on standard error: drawn in a terminal, only counted elsewhere."""

    def __init__(self) -> None:
        self.console = plain_console(stderr=True)
        self.terminal = self.console.is_terminal
        columns = (
            *(TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()),
            *(TextColumn("{task.fields[note]}"), TimeElapsedColumn(), TimeRemainingColumn()),
        )
        self.bars = Bars(*columns, console=self.console, transient=True, disable=not self.terminal)
        self.tasks: dict[str, TaskID] = {}

    def __enter__(self) -> _Bars:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bars.live.is_started:  # else stopping would print an empty line
            self.bars.stop()

    def update(self, name: str, total: int, done: int, note: str | None = None) -> None:
        """Move a bar, which appears at its first call; a total of 0 is not known."""
        if self.terminal:
            self.bars.start()
        if name not in self.tasks:
            self.tasks[name] = self.bars.add_task(name, total=total or None, note="")
        self.bars.update(self.tasks[name], completed=done)
        if note is not None:
            self.bars.update(self.tasks[name], note=note)

    def remove(self, name: str) -> None:
        """Take a bar away, if it is there."""
        if name in self.tasks:
            self.bars.remove_task(self.tasks.pop(name))

    def step(self, name: str, step: Step) -> None:
        """A training's own bar, and what it has to say."""
        self.update(name, step.rounds, step.round, _note(step))
        if step.message:
            self.line(f"{name}: {step.message}")

    def line(self, text: str) -> None:
        """A line above the bars."""
        _print(self.console, text)


def _note(step: Step) -> str | None:
    """The error of a round that was evaluated, and which workers of a cluster were slow."""
    facts = [] if step.rmse is None else [f"RMSE {step.rmse:.4f}"]
    if step.seconds:
        from fedrecplus.engines.ray import slow_workers  # here: most trainings have no cluster

        slow = [f"{name} slow: {step.seconds[name]:.1f} s" for name in slow_workers(step.seconds)]
        facts += [f"{len(step.seconds)} workers, {max(step.seconds.values()):.1f} s", *slow]
    return ", ".join(facts) or None


@contextlib.contextmanager
def show_loading() -> Iterator[Callable[[str, int, int], None]]:
    """Progress of what is fetched or made, where that takes its time and somebody looks on."""
    with _Bars() as bars:
        yield lambda what, done, total: bars.update(what, total, done)


@contextlib.contextmanager
def show_training(name: str) -> Iterator[Progress]:
    """Progress of one training: a bar in a terminal, a line per evaluation elsewhere."""
    with _Bars() as bars:

        def progress(step: Step) -> None:
            bars.step(name, step)
            if step.rmse is not None and not bars.terminal:
                bars.line(f"{name}: round {step.round} of {step.rounds}, {_note(step)}")

        yield progress


@contextlib.contextmanager
def show_jobs(name: str, count: int, remedy: str) -> Iterator[Monitor]:
    """Progress of many trainings: a bar for all of them and one for each that runs; elsewhere a line per finished one.

    Ctrl-C stops them; ``remedy`` says how to go on then.
    """
    from fedrecplus.experiments import Monitor  # here: most commands have no jobs

    with stop_on_interrupt(remedy) as stop, _Bars() as bars:
        ended = 0
        bars.update(name, count, ended)

        def of_job(job: Job) -> Progress:
            return functools.partial(bars.step, f"{job.algorithm}, fold {job.fold}")

        def done(outcome: JobOutcome) -> None:
            nonlocal ended
            ended += 1
            label = f"{outcome.job.algorithm}, fold {outcome.job.fold}"
            bars.remove(label)
            bars.update(name, count, ended)
            if not bars.terminal:
                bars.line(f"{label}: {_shown(outcome.row)} ({outcome.row['seconds']:.1f} s)")

        yield Monitor(of_job, done, stop)


@contextlib.contextmanager
def show_cases(cases: Sequence[AuditCase]) -> Iterator[Callable[[AuditCase, str, float], None]]:
    """Progress of an audit: a bar per case, with what is done in it; elsewhere a line per case when it is done."""
    with _Bars() as bars:
        for case in cases:
            bars.update(case.label, 100, 0)

        def tell(case: AuditCase, what: str, share: float) -> None:
            bars.update(case.label, 100, round(100 * share), what)
            if share >= 1.0 and not bars.terminal:
                bars.line(f"{case.label}: {what}")

        yield tell


def _shown(row: Mapping[str, Any]) -> str:
    """A finished training in a word: its error or, for likes alone, its lists."""
    if "failure" in row:
        return f"failed: {row['failure']}"
    if row["rmse"] is not None:
        return f"RMSE {row['rmse']:.4f}"
    ndcg = row["ranking"]["ndcg@10"]
    return "no relevant item" if ndcg is None else f"NDCG@10 {ndcg:.4f}"


@contextlib.contextmanager
def show_trials(name: str, count: int) -> Iterator[Callable[[Moment], None]]:
    """Progress of a search: a bar for all trials with the best so far, and one for each that runs; elsewhere lines."""
    with _Bars() as bars:
        bars.update(name, count, 0)

        def progress(moment: Moment) -> None:
            trial, label = moment.trial, f"trial {moment.trial.number}"
            best = f"best {moment.best.value:.4f}, trial {moment.best.number}" if moment.best else ""
            bars.update(name, count, moment.ended, best)
            if trial.state == "running":
                note = "" if moment.value is None else f"{trial.objective.upper()} {moment.value:.4f}"
                bars.update(label, moment.rounds, moment.round, note)
                return
            bars.remove(label)
            ended = f"{trial.objective.upper()} {trial.value or 0.0:.4f} ({trial.seconds:.1f} s)"
            ending = f"{trial.state}, {trial.why}" if trial.value is None else ended
            bars.line(f"{label}: {ending}{f'; {best}' if best else ''}")

        yield progress
