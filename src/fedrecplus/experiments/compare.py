"""Many algorithms on the same folds of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, check, preset, presets
from fedrecplus.data import RatingsLike, Split, as_ratings, as_test
from fedrecplus.data.joining import together
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.jobs import Callbacks, JobOutcome, against, cross_validation
from fedrecplus.experiments.published import Published, published
from fedrecplus.experiments.statistics import FoldMean, PairedTest, fold_mean
from fedrecplus.experiments.trivial import TRIVIAL
from fedrecplus.training.run_folder import RunFolder

FIGURES = ("mae", "rmse", "nmse", "rounds", "seconds", "bytes_up_per_client_round", "bytes_down_per_client_round")
GROUPS = ("few_ratings", "tail_items", "worst_tenth")
RANKING = ("ndcg@10", "hr@10", "recall@10")


@dataclass(frozen=True)
class Summary:
    """One algorithm over all folds."""

    dataset: str
    algorithm: str
    figures: dict[str, FoldMean]
    groups: dict[str, FoldMean | None]
    """RMSE by group; None where no fold has test ratings of that group"""
    ranking: dict[str, FoldMean]
    test: PairedTest | None
    """against the baseline; None for the baseline itself"""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        content = asdict(self)
        groups = {name: {"rmse": value} for name, value in content.pop("groups").items()}
        ranking, test = content.pop("ranking"), content.pop("test")
        return {**content, **content.pop("figures"), "groups": groups, "ranking": ranking, "against_baseline": test}


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found on one data set."""

    dataset: str
    rows: list[dict[str, Any]]
    """one per algorithm and fold, as in ``result.json``"""
    trivial: list[dict[str, Any]]
    """the same for trivial predictors that were not asked for by name: every table has them"""
    summaries: list[Summary]
    published: list[Published]
    """what others report; their folds are not ours, so no test is made"""

    def mean(self, algorithm: str, figure: str = "rmse") -> float:
        """A figure's mean over the folds."""
        return next(s for s in self.summaries if s.algorithm == algorithm).figures[figure].mean


def compare(
    ratings: RatingsLike,
    algorithms: Sequence[str | Config],
    *,
    split: str | Split = "random",
    test: RatingsLike | None = None,
    folds_count: int = 5,
    seed: int = 0,
    baseline: str | None = None,
    workers: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    callbacks: Callbacks = Callbacks(),  # noqa: B008 -- it can't be changed
) -> Comparison:
    """Train every algorithm on every fold. An algorithm is a preset's name, a trivial predictor's, or a config.

    ``split`` says how folds are cut (see ``fr.split``); with ``test``, all of ``ratings`` are trained on instead.
    ``baseline`` is what the others are tested against (the first algorithm, if not given). ``workers`` 0 means one per
    core. ``out`` gets a run folder per job; with ``resume``, jobs that are finished there are not run again. Runs that
    are in the way are refused, unless ``overwrite`` says that they may be replaced.
    """
    ratings, how = as_ratings(ratings), Split.parse(split)
    if test is not None:
        ratings, how = together(ratings, as_test(test, ratings)), Split("column")
    asked = named_configs(algorithms, seed)
    extra = {name: Config(algorithm=name, seed=seed) for name in TRIVIAL if name not in asked}
    configs = {**extra, **asked}
    baseline = baseline or next(iter(asked))
    if baseline not in configs:
        raise unknown_name("baseline", baseline, configs)

    def folder_of(name: str, fold: int) -> Path | None:
        if out is None or name in TRIVIAL:
            return None
        folder = Path(out) / name / f"fold-{fold}"
        if not resume:
            RunFolder(folder).check_free(overwrite=overwrite)
        return folder

    outcomes = cross_validation(ratings, configs, folds_count, workers, folder_of, callbacks, resume, how)
    summaries = [_summary(ratings.name, outcomes[name], outcomes[baseline]) for name in configs]
    rows, trivial = ([outcome.row for name in some for outcome in outcomes[name]] for some in (asked, extra))
    return Comparison(ratings.name, rows, trivial, summaries, published(ratings.name))


def cross_validate(
    ratings: RatingsLike,
    algorithms: str | Config | Sequence[str | Config],
    *,
    split: str | Split = "random",
    folds: int = 5,
    seed: int = 0,
) -> Comparison:
    """k-fold cross-validation of one or more algorithms: ``compare`` for the Python prompt."""
    several = [algorithms] if isinstance(algorithms, str | Config) else algorithms
    return compare(ratings, several, split=split, folds_count=folds, seed=seed)


def named_configs(algorithms: Sequence[str | Config], seed: int) -> dict[str, Config]:
    """Name → config, all with the same seed, so that they see the same folds."""
    configs: dict[str, Config] = {}
    for algorithm in algorithms:
        config = algorithm if isinstance(algorithm, Config) else _config_by_name(algorithm)
        if config.algorithm in configs:
            raise UserError(f"{config.algorithm} is there twice", "name each algorithm once")
        configs[config.algorithm] = check(replace(config, seed=seed))
    if not configs:
        raise UserError("there is nothing to compare", f"name algorithms: {', '.join(presets())}")
    return configs


def _config_by_name(name: str) -> Config:
    if name in TRIVIAL:
        return Config(algorithm=name)
    if name not in presets():
        raise unknown_name("algorithm", name, [*presets(), *TRIVIAL])
    return preset(name)


def _summary(dataset: str, own: Sequence[JobOutcome], baseline: Sequence[JobOutcome]) -> Summary:
    rows = [outcome.row for outcome in own]
    by_group = {group: [row["groups"][group]["rmse"] for row in rows] for group in GROUPS}
    known = {group: [value for value in values if value is not None] for group, values in by_group.items()}
    return Summary(
        dataset,
        own[0].job.algorithm,
        {figure: fold_mean([row[figure] for row in rows]) for figure in FIGURES},
        {group: fold_mean(values) if values else None for group, values in known.items()},
        {figure: fold_mean([row["ranking"][figure] for row in rows]) for figure in RANKING},
        against(baseline, own),
    )
