"""``fedrecplus family``: the paper's algorithms under equal settings, and the search for settings of each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli import options as shared
from fedrecplus.cli.display import say, show_jobs, show_table
from fedrecplus.cli.interrupt import stop_on_interrupt
from fedrecplus.cli.options import check_file_place, load_with_bar
from fedrecplus.data import FileOptions
from fedrecplus.errors import UserError
from fedrecplus.experiments import family as members_of, tuning_cut
from fedrecplus.experiments.family import tables, tuning as search
from fedrecplus.files import read_text, write_json_to, write_text
from fedrecplus.provenance import Stopwatch

family_app = typer.Typer(help="The paper's algorithms under equal settings.", no_args_is_help=True)
Dataset = Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")]
Model = Annotated[str, typer.Option(metavar="mf|pmf|svdpp|reconstruction", help="The model that all members train.")]
Members = Annotated[str | None, typer.Option(metavar="A;B;…", help="Only some members, with semicolons between.")]


@family_app.command("run")
@shared.reads_own_files
def run(
    dataset: Dataset = "ml-100k",
    model: Model = "mf",
    tuned: Annotated[bool, typer.Option("--tuned", help="Each member with the settings tuned for it.")] = False,
    settings_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --tuned: a file of `family tune`, not the package's own.")
    ] = None,
    members: Members = None,
    folds: Annotated[int, typer.Option(min=2, help="How many folds.")] = 5,
    settings: shared.Settings = None,
    workers: shared.Workers = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep every run folder here.")] = None,
    json_file: shared.JsonFile = None,
    markdown_file: shared.MarkdownFile = None,
    plot_file: shared.PlotFile = None,
    *,
    options: FileOptions,
) -> None:
    """Train FedMF, FedRec, FedRec++ and FedRec+, with each of its ideas alone and both, all else the same.

    \b
    Examples:
      fedrecplus family run --dataset ml-100k
      fedrecplus family run --dataset ml-1m --tuned --plot family.html

    Claims are tested over clients (Wilcoxon), with Holm's correction.
    """
    check_file_place(json_file, markdown_file, plot_file)
    watch, chosen = Stopwatch(), _members(members, model)
    if settings_file is not None and not tuned:
        raise UserError("--settings-file says nothing without --tuned", "add --tuned, or leave it out")
    for name in chosen:  # what can't be is found before data is fetched
        members_of.member_config(name, model, settings=settings or [])
    ratings = load_with_bar(dataset, options)
    title = f"family in {model} on {ratings.name}, {'tuned' if tuned else 'fixed'}"
    with show_jobs(title, folds * len(chosen), shared.KEPT) as monitor:
        results = members_of.family(
            ratings,
            model,
            tuned=_tuned(settings_file) if tuned else None,
            settings=settings or [],
            members=chosen,
            folds=folds,
            workers=workers,
            out=out,
            monitor=monitor,
        )
    content: dict[str, Any] = {**results.to_dict(), "made": watch.made(0)}
    show_table(*tables.errors_table(content), title, spare=("RMSE, 95 % interval", "NMSE"))
    if content["claims"]:
        say("")
        show_table(*tables.claims_table(content))
    shared.write_files(content, json_file, plot_file, {markdown_file: tables.to_markdown(content)})


@family_app.command("tune")
@shared.reads_own_files
def tune(
    out: Annotated[Path, typer.Option(metavar="FILE", help="TOML file to write settings into; others in it stay.")],
    dataset: Dataset = "ml-100k",
    model: Model = "mf",
    members: Members = None,
    points: Annotated[int, typer.Option(min=2, help="Settings to try, the same for all members.")] = search.POINTS,
    cuts: Annotated[int, typer.Option(min=1, help="Validation cuts to average over.")] = 1,
    settings: shared.Settings = None,
    workers: shared.Workers = 0,
    json_file: shared.JsonFile = None,
    *,
    options: FileOptions,
) -> None:
    """Search settings for every member: the same points for all, judged on validation cuts of the training folds.

    \b
    Example:
      fedrecplus family tune --dataset ml-100k --points 32 --out family.toml

    Fold 0 is left out and never looked at. The settings that come with the package were found so.
    """
    check_file_place(out, json_file)
    watch, chosen = Stopwatch(), _members(members, model)
    before = _tuned(out) if out.exists() else {}
    ratings = load_with_bar(dataset, options)

    def tell(name: str, point: tuple[str, ...], rmse: float, rounds: int) -> None:
        typer.echo(f"{name}: {rmse:.4f} after {rounds} rounds with {', '.join(point) or 'fixed settings'}", err=True)

    with stop_on_interrupt("nothing is kept of an unfinished search") as stop:
        tuned = search.tune_family(
            [tuning_cut(ratings, cut_seed=seed) for seed in range(cuts)],
            model,
            settings=settings or [],
            members=chosen,
            count=points,
            workers=workers,
            stop=stop,
            done=tell,
        )
    write_text(out, search.to_toml(before, ratings.name, model, tuned))
    names = list(tuned[0].settings)
    rows = [
        [each.name, f"{each.fixed_rmse:.4f}", f"{each.rmse:.4f}", *map(str, each.settings.values())] for each in tuned
    ]
    show_table(["member", "fixed", "tuned", *names], rows, f"RMSE on validation cuts of {ratings.name}")
    content = {"dataset": ratings.name, "model": model, "points": points, "members": [vars(each) for each in tuned]}
    write_json_to(json_file, {**content, "made": watch.made(0)})


def _tuned(file: Path | None) -> Any:
    """Tuned settings, of a file or those of the package."""
    if file is None:
        return members_of.shipped_settings()
    remedy = "give a file that `fedrecplus family tune` wrote"
    try:
        return tomllib.loads(read_text(file, remedy))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file} is no TOML: {error}", remedy) from None


def _members(text: str | None, model: str) -> list[str]:
    """Names have commas in them."""
    return [name.strip() for name in text.split(";")] if text else list(members_of.members_in(model))
