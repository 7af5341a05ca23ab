"""What commands show: tables on standard output, unless that is for JSON, and progress on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from fedrecplus.experiments.jobs import Job, Outcome
from fedrecplus.experiments.tuning import Moment, Trial
from fedrecplus.files import STDOUT
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
    headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", spare: Sequence[str] = ()
) -> bool:
    """Names and figures. Piped, a table is as wide as it needs to be: names are never cut.

    In a terminal that is too narrow, ``spare`` columns are left out and long names folded; what is still too wide is
    left to the terminal to wrap. Says whether the table is whole.
    """
    console = plain_console()
    room = console.width if console.is_terminal else _PIPED_WIDTH
    columns = list(zip(headings, *rows, strict=True))
    whole = _least_width(columns) <= room
    if not whole:
        columns = [column for column in columns if column[0] not in spare]
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column(columns[0][0], overflow="fold")
    for heading, *_ in columns[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in zip(*(column[1:] for column in columns), strict=True):
        table.add_row(*row)
    plain_console(width=max(room, _least_width(columns))).print(table)
    return whole


def _least_width(columns: Sequence[Sequence[str]]) -> int:
    """What a table needs, with two blanks between columns and long names folded."""
    widths = [max(len(cell) for cell in column) for column in columns]
    return min(widths[0], _NAME_WIDTH) + sum(2 + width for width in widths[1:])


def show_list(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and what they mean, folded to the terminal's width."""
    console = plain_console()
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for pair in pairs:
        table.add_row(*pair)
    plain_console(width=None if console.is_terminal else _PIPED_WIDTH).print(table)


def say(text: str) -> None:
    """A line on standard output, never wrapped."""
    plain_console().print(text, soft_wrap=True)


@contextlib.contextmanager
def show_training(name: str) -> Iterator[Progress]:
    """Progress of one training: a bar in a terminal, a line per evaluation elsewhere."""
    console = plain_console(stderr=True)
    with _bars(console) as bars:
        task: TaskID | None = None

        def progress(step: Step) -> None:
            nonlocal task
            if task is None:
                task = bars.add_task(name, total=step.rounds, rmse="")
            bars.update(task, completed=step.round)
            _tell(console, bars, task, name, step)

        yield progress


@contextlib.contextmanager
def show_jobs(name: str, count: int) -> Iterator[tuple[Callable[[Job], Progress], Callable[[Outcome], None]]]:
    """Progress of many trainings: a bar for all of them and one for each that runs; elsewhere a line per finished one.

    Gives the function that makes a job's progress, and the one to call with each outcome.
    """
    console = plain_console(stderr=True)
    with _bars(console) as bars:
        whole = bars.add_task(name, total=count, rmse="")
        tasks: dict[tuple[str, int], TaskID] = {}

        def of_job(job: Job) -> Progress:
            key, label = (job.algorithm, job.fold), f"{job.algorithm}, fold {job.fold}"

            def progress(step: Step) -> None:
                if key not in tasks:
                    tasks[key] = bars.add_task(label, total=step.rounds, rmse="")
                bars.update(tasks[key], completed=step.round)
                _tell(console, bars, tasks[key], label, step, lines=False)

            return progress

        def done(outcome: Outcome) -> None:
            key = (outcome.job.algorithm, outcome.job.fold)
            if key in tasks:
                bars.remove_task(tasks.pop(key))
            bars.advance(whole)
            if not console.is_terminal:
                rmse, seconds = outcome.row["rmse"], outcome.row["seconds"]
                _line(console, f"{key[0]}, fold {key[1]}: RMSE {rmse:.4f} ({seconds:.1f} s)")

        yield of_job, done


@contextlib.contextmanager
def show_trials(name: str, count: int) -> Iterator[Callable[[Moment], None]]:
    """Progress of a search: a bar for all trials with the best so far, and one for each that runs; elsewhere lines."""
    console = plain_console(stderr=True)
    with _bars(console) as bars:
        whole = bars.add_task(name, total=count, rmse="")
        running: dict[int, TaskID] = {}

        def progress(moment: Moment) -> None:
            trial, best = moment.trial, moment.best
            if best is not None:
                bars.update(whole, rmse=f"best {best.rmse:.4f}, trial {best.number}")
            if trial.state == "running":
                if trial.number not in running:
                    running[trial.number] = bars.add_task(f"trial {trial.number}", total=moment.rounds, rmse="")
                text = "" if moment.rmse is None else f"RMSE {moment.rmse:.4f}"
                bars.update(running[trial.number], completed=moment.round, rmse=text)
                return
            if trial.number in running:
                bars.remove_task(running.pop(trial.number))
            bars.update(whole, completed=moment.ended)
            best_so_far = f"; best {best.rmse:.4f}, trial {best.number}" if best else ""
            _line(bars.console, f"trial {trial.number}: {_how_it_went(trial)}{best_so_far}")

        yield progress


def _how_it_went(trial: Trial) -> str:
    return f"{trial.state}, {trial.why}" if trial.rmse is None else f"RMSE {trial.rmse:.4f} ({trial.seconds:.1f} s)"


@contextlib.contextmanager
def _bars(console: Console) -> Iterator[Bars]:
    """Bars that are drawn in a terminal and only counted elsewhere."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rmse]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bars = Bars(*columns, console=console, transient=True, disable=not console.is_terminal)
    if console.is_terminal:
        bars.start()
    try:
        yield bars
    finally:
        if console.is_terminal:
            bars.stop()


def _tell(console: Console, bars: Bars, task: TaskID, name: str, step: Step, lines: bool = True) -> None:
    if step.message:
        _line(bars.console, f"{name}: {step.message}")
    if step.rmse is not None:
        bars.update(task, rmse=f"RMSE {step.rmse:.4f}")
        if lines and not console.is_terminal:
            _line(console, f"{name}: round {step.round} of {step.rounds}, RMSE {step.rmse:.4f}")


def _line(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True)
