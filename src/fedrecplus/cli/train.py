"""``fedrecplus train``."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli import options as shared
from fedrecplus.cli.declaring import JsonFile, check_file_place, names_in, takes
from fedrecplus.cli.display import say, show_table, show_training, tell
from fedrecplus.cli.interrupt import stop_on_interrupt
from fedrecplus.cli.train_data import Asked
from fedrecplus.config import Config, change, check
from fedrecplus.data import FileOptions, Ratings, Split, is_shard_folder
from fedrecplus.errors import UserError
from fedrecplus.experiments import ndcg_of_popular, rmse_of_means
from fedrecplus.files import write_json_to
from fedrecplus.parts.channel import least_persons
from fedrecplus.training import (
    AUTO,
    CHECKPOINT_SECONDS,
    FALLBACK,
    RATINGS,
    Choice,
    Run,
    RunFolder,
    SharedModel,
    choose,
    continued,
    step_size,
    train,
)


@takes(changes=shared.changes_of, options=shared.own_file)
def train_command(
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME-OR-FILE", help="Ratings: a known name or a file.")
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET-OR-FILE",
            help="A preset (see `presets`), a TOML file or a run folder. Default: what suits the ratings.",
        ),
    ] = None,
    split_by: shared.SplitBy = None,
    test_file: shared.TestFile = None,
    fold: Annotated[int | None, typer.Option(help="Fold to test on, 0 to 4. Default: 0.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Train on everything, test on nothing.")] = False,
    seed: shared.Seed = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Run folder. Default: one in runs/.")] = None,
    start_from: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="RUN", help="Begin with this run's table: known items keep their rows, new ones enter."
        ),
    ] = None,
    add: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Ratings that came since: beside --dataset's, or those of the --from run."),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(metavar="PERSON,…", help="People who left: their ratings are taken out of what is trained on."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    allow: shared.Allow = None,
    json_file: JsonFile = None,
    checkpoint_seconds: Annotated[
        float, typer.Option(min=0.0, help="Seconds between checkpoints.")
    ] = CHECKPOINT_SECONDS,
    *,
    changes: shared.Changes,
    options: FileOptions,
) -> None:
    """Train one algorithm and test it on the fold that was left out.

    Without --algorithm a validation cut of the training ratings says what suits them: fedrec+secure, or biases
    with popular items where it is no better. The cut leaves out what --split does. That takes about as long again.

    \b
    Examples:
      fedrecplus train --dataset ml-100k
      fedrecplus train --dataset ml-100k --algorithm fedrec+
      fedrecplus train --dataset my.csv --algorithm fedmf --full --set model.factors=10
      fedrecplus train --dataset my.csv --items films.csv --split time:0.1
      fedrecplus train --dataset train.csv --test test.csv --algorithm fedmf
      fedrecplus train --dataset ml-100k --algorithm fedrec+ --channel secure --rows whole
      fedrecplus train --resume --out runs/ml-100k-fedrec+-fold0-seed0
      fedrecplus train --from runs/first --add november.csv --out runs/second
      fedrecplus train --from runs/second --without 196,405 --out runs/third

    A run folder gets config.toml, metrics.jsonl, result.json and the model. Ctrl-C or a kill leaves a checkpoint in it
    that --resume goes on from, to the very same numbers; the noise of a budget is other noise in the rounds that are
    left.

    --from goes on for a fifth of the rounds, with the settings that the run ended with. A test fold stays that of the
    run: what is added is trained on.

    --set chooses and tunes the parts of an algorithm: model, encoder, pseudo_items, virtual_ratings, aggregation,
    server_optimizer, channel, privacy. `fedrecplus settings` lists their rules and all settings. --channel and --rows
    are short for two of them: docs/privacy.md says which to choose when.
    """
    if full and fold is not None:
        raise UserError("--full trains on every fold, --fold leaves one out", "give one of them")
    if resume and overwrite:
        raise UserError("--resume keeps what is in the folder, --overwrite replaces it", "give one of them")
    check_file_place(json_file)
    began = _began(out) if resume and out else None
    earlier = None if began else start_from
    asked = Asked(dataset, fold, full, options, split_by, test_file, add, tuple(names_in(without)))
    gone_on = RunFolder(earlier) if earlier is not None and dataset is None else None
    data = asked.data(began or gone_on, resumed=began is not None)
    unnamed = algorithm in (None, AUTO) and began is None and earlier is None
    named = _start_of(RATINGS if unnamed else algorithm, seed, allow or [], began, earlier)
    start = changes.applied(named)
    chosen = start if changes.budget else check(start)
    sharded = chosen.engine == "ray" and data.test is None and is_shard_folder(data.dataset)
    training, test = (data.shards(), None) if sharded else data.parts(chosen.seed)
    chosen = check(changes.for_people(chosen, training.clients))
    if training.likes_alone and not chosen.model.CHOICES:
        tell(
            f"note: all ratings are the same (likes alone), and model.rule={chosen.model.rule} learns from how ratings "
            "differ: its lists are by popularity at best. "
            + ("No model for choices has a budget yet." if changes.budget else "Leave --algorithm away.")
        )
    about = data.to_dict()
    if out and not resume:
        RunFolder(out).check_free(overwrite=overwrite)  # before a choice is trained for
    if unnamed:
        judged = replace(named, evaluation=chosen.evaluation)
        chosen, about["choice"] = _what_suits(training, start, chosen, data.split, changed=chosen != judged)
        chosen = replace(chosen, evaluation=judged.evaluation)
    folder = out or _default_folder(training.name, chosen, data.fold, resume)
    if not resume:
        RunFolder(folder).check_free(overwrite=overwrite)
    hint = f"go on with `fedrecplus train --resume --out {folder}`"
    with stop_on_interrupt(hint) as stop, show_training(chosen.algorithm) as progress:
        run = train(
            training,
            test,
            chosen,
            progress=progress,
            out=folder,
            resume=resume,
            overwrite=overwrite,
            stop=stop,
            fold=data.fold,
            about_data=about,
            checkpoint_seconds=checkpoint_seconds,
            start=start_from,
        )
    _report(run, folder, json_file)
    if asked.without and run.result["statistics"]["epsilon"] is None:
        tell(
            "note: counts and averages are exact: whoever has the model of before, too, reads from the difference what "
            "one person who left had rated. Let several leave and come together, and publish one of the two models"
        )
    _say_how_many_are_needed(run, training)
    if test is not None:
        _say_what_is_better(run, training, test)


def _what_suits(training: Ratings, start: Config, chosen: Config, how: Split, *, changed: bool) -> tuple[Config, str]:
    """The settings that suit the ratings, or the ones that were changed, and why; it is said, too."""
    choice = Choice(chosen, "with settings of your own; nothing else was tried") if changed else None
    if choice is None:
        tell("choosing by a validation cut of the training ratings, which takes about as long as the training …")
        choice = choose(training, start.seed, how, tried=lambda candidate: tell(f"tried {candidate.figures}"))
    tell(f"algorithm: {choice.config.algorithm}: {choice.why}")
    return choice.config, choice.why


def _began(folder: Path) -> RunFolder:
    run = RunFolder(folder)
    if not run.begun:
        raise UserError(f"{folder} holds no run to resume", "check --out, or leave --resume out")
    return run


def _start_of(
    algorithm: str | None,
    seed: int | None,
    allow: list[str],
    began: RunFolder | None,
    earlier: Path | None,
) -> Config:
    """The settings to start from, before options change some."""
    if algorithm is None and began is None and not RunFolder(Path(str(earlier))).finished:
        raise UserError(
            f"--from: {earlier} is not the folder of a finished run", "give a folder that `train` has written"
        )
    config = shared.config_of(algorithm or str(began.path if began else earlier), allow)
    if algorithm is None and began is None:
        run = RunFolder(Path(str(earlier)))
        config = continued(SharedModel.read(run.path, allow), config, again=bool(run.data().get("start")))
        if seed not in (None, config.seed):
            raise UserError(
                f"--from goes on with its run's seed, {config.seed}: it cut the test fold", "leave --seed out"
            )
    return config if seed is None else change(config, "seed", seed, "--seed")


def _default_folder(dataset: str, config: Config, fold: int | None, resume: bool) -> Path:
    """A new folder in ``runs/``; when resuming, the newest one of that name."""
    part = "full" if fold is None else f"fold{fold}"
    name = re.sub(r"[^\w.+-]+", "-", f"{dataset}-{config.algorithm}-{part}-seed{config.seed}")

    def numbered(number: int) -> Path:
        return Path("runs") / (name if number == 1 else f"{name}-{number}")

    begun = sum(1 for _ in takewhile(lambda number: RunFolder(numbered(number)).begun, count(1)))
    if resume and begun == 0:
        raise UserError(f"there is no run {name} in runs/ to resume", "give its folder with --out")
    return numbered(begun if resume else begun + 1)


def _report(run: Run, folder: Path, json_file: Path | None) -> None:
    result = run.result
    write_json_to(json_file, result)
    headings = ["algorithm", "MAE", "RMSE", "NMSE", "NDCG@10", "rounds", "seconds", "KB up", "KB down"]
    values = [*(result[name] for name in ("mae", "rmse", "nmse")), (result["ranking"] or {}).get("ndcg@10")]
    figures = ["–" if figure is None else f"{figure:.4f}" for figure in values]
    traffic = [f"{result[f'bytes_{direction}_per_client_round'] / 1000:.1f}" for direction in ("up", "down")]
    row = [result["algorithm"], *figures, str(result["rounds"]), f"{result['seconds']:.1f}", *traffic]
    show_table(headings, [row])
    if (sampled := (result["ranking"] or {}).get("sampled_hr@10")) is not None:
        share, ndcg = result["config"]["evaluation"]["negatives"], result["ranking"]["sampled_ndcg@10"]
        say(f"each test item among {share} drawn ones: HR@10 {sampled:.4f}, NDCG@10 {ndcg:.4f}; above, among all")
    if result.get("likes_alone"):
        say("all ratings are the same (likes alone): there is no rating to predict, so NDCG@10 is what counts")
    if result["cold_test_ratings"]:
        share = f"{result['cold_test_ratings']:,} of {result['test_ratings']:,} test ratings"
        what = "nothing is known of them" if result.get("likes_alone") else "a mean rating is predicted there"
        tell(f"note: {share} are of users or items without training ratings: {what}")
    if (begun := result["began_with"]) is not None:
        say(f"began with {begun['known_items']:,} known items of {begun['folder']}; {begun['new_items']:,} are new")
    if result["retries"]:
        step = f"{step_size(run.config)[0]} = {result['learning_rate']:g}"
        say(f"diverged {result['retries']} times; trained with {step}")
    if (privacy := result["privacy"]) is not None:
        say(f"(ε, δ) = ({privacy['epsilon']:.3g}, {privacy['delta']:g}) per {privacy['unit']}: {privacy['mechanism']}")
        if privacy["unit"] == "user":
            say(shared.NOT_COVERED)
            if privacy["seeded_noise"]:
                say("the noise comes from the seed (--seeded-noise): nothing of this run may be published")
            say(f"uploads went by channel.rule={result['channel']}; predicted rating and noisy popularity rank lists")
        elif "epsilon_of_largest_user" in privacy:
            say(
                f"no claim about a person: for the one with most ratings it adds up to ε = "
                f"{privacy['epsilon_of_largest_user']:.3g}, and the statistics are exact figures"
            )
    say(f"run folder: {folder}")


def _say_how_many_are_needed(run: Run, training: Ratings) -> None:
    """Say so where devices would refuse the sums that were simulated: of so few people they tell too much of each."""
    fewest = least_persons(run.config.model.columns)
    if run.config.channel.rule == "secure" and run.result["privacy"] is None and training.clients < fewest:
        tell(
            f"note: {training.clients} people are enough for a simulation alone: devices take part in secure sums of "
            f"{fewest} people or more, unless each adds noise (--epsilon with --noise distributed)"
        )


def _say_what_is_better(run: Run, training: Ratings, test: Ratings) -> None:
    """Say so where means or the most popular items do better: what is no better than these is no recommender."""
    if run.config.algorithm == FALLBACK:
        return
    error, ndcg = run.result["rmse"], (run.result["ranking"] or {}).get("ndcg@10")
    if error is not None and (means := rmse_of_means(training, test)) < error:
        tell(f"note: means of people and items alone (bias-only) predict these ratings better: RMSE {means:.4f}")
    if ndcg is not None:
        popular = ndcg_of_popular(training, test, run.config.evaluation.relevant_from)
        if popular is not None and popular > ndcg:
            tell(f"note: the most popular items are a better list than these: NDCG@10 {popular:.4f}")
