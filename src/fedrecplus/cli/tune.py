"""``fedrecplus tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus import experiments
from fedrecplus.cli import options as shared
from fedrecplus.cli.display import say, show_table, show_trials
from fedrecplus.cli.interrupt import stop_on_interrupt
from fedrecplus.config import Config, dumps, value_of
from fedrecplus.data import FileOptions
from fedrecplus.errors import UserError
from fedrecplus.files import write_json_to, write_text
from fedrecplus.provenance import Stopwatch
from fedrecplus.settings import value_text

_SHOWN = 5
LIST_OBJECTIVE = "ndcg@10"
"""what settings are chosen by where there are no ratings"""


@shared.reads_own_files
def tune_command(
    dataset: Annotated[list[str], typer.Option(metavar="NAME-OR-FILE", help="Ratings; may be repeated.")],
    algorithm: Annotated[str, typer.Option(metavar="PRESET", help="The preset or TOML file to start from.")],
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART.OPTION=…",
            help="What to search: low..high, low..high:log or a,b,c; may be repeated. Default: around the preset.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="rmse|ndcg@10|…",
            help="What to choose by: rmse, or ndcg, recall, precision, hr, map, mrr at a list length. Default: rmse.",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="How many trials the study shall have in all.")] = 50,
    split_by: shared.SplitBy = None,
    test_file: shared.TestFile = None,
    fold: Annotated[int, typer.Option(help="Fold that is left out, 0 to 4, and never looked at.")] = 0,
    share: Annotated[float, typer.Option(help="Share of the other folds that settings are chosen by.")] = 0.1,
    cuts: Annotated[int, typer.Option(min=1, help="Validation cuts to average over, each of that share.")] = 1,
    cut_seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the first cut; the next ones count up. Default: --seed.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Trials side by side; 0: one per core.")] = 0,
    seed: shared.Seed = None,
    allow: shared.Allow = None,
    settings: shared.Settings = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The winning config. Default: tuned-PRESET.toml.")
    ] = None,
    storage: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The study, which a second call goes on with. Default: --out as .db."),
    ] = None,
    json_file: shared.JsonFile = None,
    *,
    options: FileOptions,
) -> None:
    """Search for settings with a lower error or better lists, on validation cuts of the training folds.

    \b
    Examples:
      fedrecplus tune --dataset ml-100k --algorithm fedmf --trials 100
      fedrecplus tune --dataset ml-100k --algorithm fedrec+ --search model.factors=10..60 --search model.noise=0.5..2
      fedrecplus tune --dataset ml-100k --algorithm fedrec+ --trials 300 --cuts 2 --workers 8
      fedrecplus tune --dataset ml-100k --algorithm fedrec+secure --objective ndcg@10 --split last:1
      fedrecplus compare --dataset ml-100k --algorithm fedmf,tuned-fedmf.toml

    The first trial is the preset itself. On several data sets the mean of their RMSEs counts, each on the scale 1 to 5.
    With --workers 1 the same seed gives the same trials; with more, it depends on which trial ends first.
    The same call again goes on where the last one ended: after Ctrl-C, after a kill, or with more --trials.
    """
    out = out or Path(f"tuned-{Path(algorithm).name.removesuffix('.toml')}.toml")
    shared.check_file_place(out, storage, json_file)
    storage = storage or out.with_suffix(".db")
    places = [place.absolute() for place in (out, storage, json_file, Path(algorithm)) if place]
    if len(set(places)) < len(places):
        raise UserError("--algorithm, --out, --storage and --json name the same file", "give each a file of its own")
    if objective is not None:
        experiments.Objective(objective)  # a misspelling is found before data is fetched
    start = shared.changed(shared.config_of(algorithm, allow), seed, settings)
    lists = objective is not None and experiments.Objective(objective).maximised
    dimensions = experiments.parse_dimensions(search or [], start) or experiments.default_dimensions(start, lists=lists)
    scheme = shared.split_of(split_by, options, test_file)
    experiments.import_optuna()  # if it is missing, that is said before data is fetched
    watch = Stopwatch()
    seeds = [(start.seed if cut_seed is None else cut_seed) + more for more in range(cuts)]
    sets = [shared.with_test(shared.load_with_bar(name, options), test_file, options) for name in dataset]
    if len({ratings.name for ratings in sets}) < len(sets):
        raise UserError("a data set is there twice", "name each data set once")
    if objective is None and all(ratings.likes_alone for ratings in sets):
        objective = LIST_OBJECTIVE
        say(f"note: there are no ratings, so settings are chosen by {objective}")
        dimensions = dimensions if search else experiments.default_dimensions(start, lists=True)
    all_cuts = [
        experiments.tuning_cut(ratings, fold, share, start.seed, one, scheme) for ratings in sets for one in seeds
    ]
    _note_other_start(start, dimensions)
    kept: experiments.Trial | None = None
    hint = f"the same command goes on with the study in {storage}"
    with stop_on_interrupt(hint) as stop, show_trials(algorithm, trials) as progress:

        def tell(moment: experiments.Moment) -> None:
            nonlocal kept
            if moment.best is not None and moment.best != kept:  # a killed search leaves the best that it had
                write_text(out, dumps(experiments.with_values(start, moment.best.settings)))
                kept = moment.best
            progress(moment)

        tuned = experiments.tune(
            all_cuts,
            start,
            dimensions,
            objective=objective or "rmse",
            trials=trials,
            workers=workers,
            storage=storage,
            progress=tell,
            stop=stop,
        )
    write_text(out, dumps(tuned.config))
    asked = {
        "datasets": dataset,
        "split": str(scheme),
        "test": test_file,
        "fold": fold,
        "share": share,
        "cut_seeds": seeds,
    }
    searched = {"search": [str(one) for one in dimensions]}
    write_json_to(json_file, {**asked, **searched, **tuned.to_dict(), "made": watch.made(start.seed)})
    _report(tuned, dimensions, out, storage)


def _note_other_start(start: Config, dimensions: list[experiments.Dimension]) -> None:
    for dimension in dimensions:
        own = value_of(start, dimension.name)
        if (nearest := dimension.nearest(own)) != own:
            name = f"{start.algorithm} has {dimension.name} = {value_text(own)}"
            say(f"note: {name}, which isn't searched; the first trial has {value_text(nearest)}")


def _report(tuned: experiments.Tuned, dimensions: list[experiments.Dimension], out: Path, storage: Path) -> None:
    start, leaders = tuned.start, tuned.leaders(_SHOWN)
    title = f"{start.algorithm}: the best of {len(tuned.trials)} trials"
    headings = ["setting", "preset", *(f"trial {trial.number}" for trial in leaders), "importance"]
    spare, rows = headings[-3:-1], _rows(tuned, dimensions, leaders)
    if not tuned.importances:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    show_table(headings, rows, title, spare=spare)
    counts = [f"{sum(t.state == state for t in tuned.trials)} {state}" for state in ("complete", "pruned", "failed")]
    say(f"\n{', '.join(counts)}; study: {storage}")
    changed = [name for name, value in tuned.best.settings.items() if value != value_of(start, name)]
    say(f"winner: {out}, which differs from {start.algorithm} in" if changed else f"{out}: nothing beat the preset")
    for name in changed:
        say(f"  {name} = {value_text(tuned.best.settings[name])}")


def _rows(
    tuned: experiments.Tuned, dimensions: list[experiments.Dimension], leaders: list[experiments.Trial]
) -> list[list[str]]:
    """A row per figure and setting, the most important first; a column for the preset and for each leader."""
    start, first = tuned.start, tuned.trials[0]
    is_preset = all(value == value_of(start, name) for name, value in first.settings.items())
    columns = [first if is_preset else experiments.Trial(-1, {}), *leaders]
    rows = [[f"{tuned.objective}, validation", *(_number(trial.value) for trial in columns), ""]]
    if len(tuned.best.by_dataset) > 1:
        rows += [
            [f"  {name}", *(_number(trial.by_dataset.get(name)) for trial in columns), ""]
            for name in tuned.best.by_dataset
        ]
    rows.append(["best round", *(str(trial.best_round or "–") for trial in columns), ""])
    for dimension in sorted(dimensions, key=lambda dimension: -tuned.importances.get(dimension.name, 0.0)):
        name = dimension.name
        weight = f"{tuned.importances.get(name, 0.0):.0%}"
        cells = [value_text(value_of(start, name)), *(value_text(trial.settings[name]) for trial in leaders)]
        rows.append([name, *cells, weight])
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
