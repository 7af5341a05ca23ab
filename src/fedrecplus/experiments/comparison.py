"""What a comparison came to: figures over folds, and the table that shows them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from fedrecplus.data import frame_of
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.statistics import FoldMean, PairedTest, fold_mean
from fedrecplus.experiments.trivial import ADDED, LIST_NAMES, TRIVIAL
from fedrecplus.markdown import csv_table, html_table, markdown_table
from fedrecplus.training import MEASURES


@dataclass(frozen=True)
class Published:
    """One system's figures on one data set: random five-fold cross-validation, 80/20."""

    system: str
    dataset: str
    mae: float
    rmse: float
    nmse: float | None
    """None where the source doesn't give it"""
    source: str
    """who reports it; ``computed`` for trivial predictors that need no source"""


def published(dataset: str) -> list[Published]:
    """The published figures for a data set, in the order of ``published.csv``; none for data nobody published on.

    >>> best = min(published("ml-100k"), key=lambda row: row.rmse)
    >>> best.system, best.rmse, best.source
    ('FedRec SVD++, hybrid filling, ρ=1', 0.9185, 'logs in GitHub Guanyu-Lin/FedRec')
    >>> published("my-ratings.csv")
    []

    Ours: absolute numbers of the FedRec+ paper are below trivial predictors, so a table needs the others beside them.
    """
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["dataset"] == dataset]
    return [
        Published(row["system"], dataset, float(row["mae"]), float(row["rmse"]), _or_none(row["nmse"]), row["source"])
        for row in rows
    ]


def _or_none(text: str) -> float | None:
    return float(text) if text else None


FIGURES = ("mae", "rmse", "nmse", "rounds", "seconds", "bytes_up_per_client_round", "bytes_down_per_client_round")
GROUPS = ("few_ratings", "tail_items", "worst_tenth")
RANKING = (
    "ndcg@10", "hr@10", "recall@10", "precision@10", "map@10", "mrr@10", "coverage@10", "popularity@10",
    *(f"{measure}@{depth}" for depth in (5, 20) for measure in (*MEASURES, "coverage", "popularity")),
)  # fmt: skip
BY_TIME = ("soon", "later")
LIST_GROUPS = ("few_ratings", "many_ratings", "tail_items", *BY_TIME)
SPARE = ("NMSE", "RMSE, 95 % interval", "p")
"""columns of the first table that a narrow terminal goes without: the second table has them"""
Table = tuple[Sequence[str], list[list[str]]]
"""headings and rows"""


@dataclass(frozen=True)
class Summary:
    """One algorithm over all folds."""

    dataset: str
    algorithm: str
    figures: dict[str, FoldMean | None]
    """errors are None for likes alone"""
    groups: dict[str, FoldMean | None]
    """RMSE by group; None where no fold has test ratings of that group"""
    ranking: dict[str, FoldMean | None]
    """None where no fold has a relevant test item"""
    ranking_groups: dict[str, FoldMean | None]
    """NDCG@10 by group"""
    test: PairedTest | None
    """of RMSE, against the baseline; None for the baseline itself, and for likes alone"""
    list_test: PairedTest | None
    """of NDCG@10, against the baseline; None for the baseline itself"""
    failure: str | None = None
    """what a model from outside raised, in whichever fold; it has no figures then"""

    @classmethod
    def of(
        cls,
        dataset: str,
        algorithm: str,
        rows: Sequence[Mapping[str, Any]],
        test: PairedTest | None = None,
        list_test: PairedTest | None = None,
    ) -> Summary:
        """Of the results of all folds, as in ``result.json``."""
        failure = next((row["failure"] for row in rows if "failure" in row), None)
        if failure is not None:  # a mean over the folds that went well would be of other test ratings
            rows = [{**row, **dict.fromkeys(FIGURES[:3]), "groups": {}, "ranking": {}} for row in rows]
        groups, lists = ([row[name] or {} for row in rows] for name in ("groups", "ranking"))
        list_groups = [figures.get("groups", {}) for figures in lists]
        return cls(
            dataset,
            algorithm,
            {figure: over_folds(row[figure] for row in rows) for figure in FIGURES},
            {group: over_folds(of_fold.get(group, {}).get("rmse") for of_fold in groups) for group in GROUPS},
            {figure: over_folds(figures.get(figure) for figures in lists) for figure in RANKING},
            {name: over_folds(one.get(name, {}).get("ndcg@10") for one in list_groups) for name in LIST_GROUPS},
            test,
            list_test,
            failure,
        )

    @classmethod
    def read(cls, content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Summary:
        """What ``to_dict`` wrote, of the rows that it is about: the means are theirs, the tests are read."""
        dataset, algorithm = content["dataset"], content["algorithm"]
        own = [row for row in rows if (row["dataset"], row["algorithm"]) == (dataset, algorithm)]
        read = (content["against_baseline"], content["lists_against_baseline"])
        return cls.of(dataset, algorithm, own, *(test and PairedTest(**test) for test in read))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        content = asdict(self)
        groups = {name: {"rmse": value} for name, value in content.pop("groups").items()}
        by_group = {name: {"ndcg@10": value} for name, value in content.pop("ranking_groups").items()}
        ranking = {**content.pop("ranking"), "groups": by_group}
        tests = {"against_baseline": content.pop("test"), "lists_against_baseline": content.pop("list_test")}
        return {**content, **content.pop("figures"), "groups": groups, "ranking": ranking, **tests}


def over_folds(values: Iterable[float | None]) -> FoldMean | None:
    """The mean of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return fold_mean(known) if known else None


@dataclass(frozen=True, repr=False)
class Comparison:
    """What ``compare`` found on one data set."""

    dataset: str
    rows: list[dict[str, Any]]
    """one per algorithm and fold, as in ``result.json``"""
    trivial: list[dict[str, Any]]
    """the same for trivial predictors that were not asked for by name: every table has them"""
    summaries: list[Summary]
    published: list[Published]
    """what others report on random folds; theirs are not ours, so no test is made"""
    split: str = "random"
    """how training and test were cut"""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> list[Comparison]:
        """What ``to_json`` wrote, by data set."""
        every = [*content["rows"], *content["trivial"]]
        return [
            cls(
                name,
                [row for row in content["rows"] if row["dataset"] == name],
                [row for row in content["trivial"] if row["dataset"] == name],
                [Summary.read(row, every) for row in content["summary"] if row["dataset"] == name],
                [Published(**row) for row in content["published"] if row["dataset"] == name],
                split,
            )
            for name, split in content["splits"].items()
        ]

    @property
    def title(self) -> str:
        """The data set and, where it isn't the usual one, the split."""
        return self.dataset if self.split == "random" else f"{self.dataset}, split {self.split}"

    def __repr__(self) -> str:
        headings, rows = errors_table(self)
        return f"Comparison({self.title!r})\n{markdown_table(headings, rows)}"

    def _repr_html_(self) -> str:
        return html_table(*errors_table(self), self.title, comparison_notes(self))

    def to_frame(self, backend: str = "polars") -> Any:
        """A row per algorithm and fold with its figures, trivial predictors included."""
        every = [*self.rows, *self.trivial]
        names = ("algorithm", "fold", *FIGURES)
        columns = {name: [row[name] for row in every] for name in names}
        columns |= {name: [row["ranking"].get(name) for row in every] for name in RANKING[:3]}
        return frame_of(columns, backend)

    def mean(self, algorithm: str, figure: str = "rmse") -> float:
        """A figure's mean over the folds: ``rmse``, ``ndcg@10``."""
        by_name = {summary.algorithm: summary for summary in self.summaries}
        if algorithm not in by_name:
            raise unknown_name("algorithm", algorithm, by_name)
        figures = {**by_name[algorithm].figures, **by_name[algorithm].ranking}
        if figure not in figures:
            raise unknown_name("figure", figure, figures)
        of_figure = figures[figure]
        if of_figure is None:
            raise UserError(f"{algorithm} has no {figure} here", "likes alone have ranking measures, such as ndcg@10")
        return of_figure.mean


def errors_table(comparison: Comparison) -> Table:
    """A row per algorithm: errors and costs, means ± standard deviations over folds."""
    headings = ("algorithm", "MAE", "RMSE", "NDCG@10", *SPARE, "rounds", "seconds", "KB up", "KB down")
    rows = []
    for summary in comparison.summaries:
        mae, rmse, nmse, *costs = (summary.figures[name] for name in FIGURES)
        figures = [mae, rmse, summary.ranking["ndcg@10"], nmse]
        rounds, seconds, up, down = (cost.mean if cost else 0.0 for cost in costs)
        ends = [f"{rounds:.0f}", f"{seconds:.1f}", f"{up / 1000:.1f}", f"{down / 1000:.1f}"]
        cells = [*map(figure_cell, figures), *test_cells(summary), *ends]
        failed = ["–", "failed", *["–"] * (len(cells) - 2)]
        rows.append([summary.algorithm, *(cells if summary.failure is None else failed)])
    return headings, rows


def comparison_notes(comparison: Comparison) -> list[str]:
    """What a reader must know to read the tables: rows that nobody asked for, and errors that mean nothing."""
    asked = list(dict.fromkeys(row["algorithm"] for row in comparison.rows))
    added = [name for name in ADDED if name not in asked]
    lines = [f"{one.algorithm} failed: {one.failure}" for one in comparison.summaries if one.failure]
    if added:
        names = " and ".join(added)
        lines.append(f"{names} {'are' if len(added) > 1 else 'is'} added to every comparison: a floor to beat")
    if "global-mean" in {summary.algorithm for summary in comparison.summaries}:
        lines.append("as a list, global-mean is the most popular items")
    ndcg = {summary.algorithm: summary.ranking["ndcg@10"] for summary in comparison.summaries}
    floor = ndcg.get("global-mean")
    worse = [name for name in asked if (of_rule := ndcg[name]) and floor and of_rule.mean < floor.mean]
    if worse:
        lines.append(f"the most popular items are a better list than those of {', '.join(worse)}")
    errors = {summary.algorithm: summary.figures["rmse"] for summary in comparison.summaries}
    biases = errors.get("bias-only")
    trained = [name for name in asked if name not in TRIVIAL]
    lost = [name for name in trained if biases and (own := errors[name]) and own.mean > biases.mean]
    if lost:
        lines.append(f"bias-only, which knows means alone, predicts ratings better than {', '.join(lost)}")
    if is_of_likes(comparison):
        counts = "there is no rating to predict, so NDCG@10 is what counts, and p is of it"
        lines.append(f"all ratings are the same (likes alone): {counts}")
    return lines


def is_of_likes(comparison: Comparison) -> bool:
    """Whether no rating tells more than that something was chosen."""
    return all(row["rmse"] is None for row in (*comparison.rows, *comparison.trivial))


def figure_cell(figure: FoldMean | None) -> str:
    """A figure as tables show it."""
    return "–" if figure is None else str(figure)


def test_cells(summary: Summary) -> list[str]:
    """The interval of the RMSE, and p; of likes alone, p is that of NDCG@10."""
    rmse = summary.figures["rmse"]
    test = summary.list_test if rmse is None else summary.test
    return ["–" if rmse is None else rmse.interval, "baseline" if test is None else f"{test.p:.2g}"]


_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES, *(f"{group}_rmse" for group in GROUPS), *RANKING)
_SHOWN = ("ndcg@10", "hr@10", "recall@10", "coverage@10")
_ALSO_SHOWN = ("map@10", "mrr@10", "popularity@10")
_LISTS = ("lists", "MAP@10", "MRR@10", "popularity", "few ratings", "many", "tail items")


def to_json(comparisons: Sequence[Comparison], made: dict[str, Any] | None = None) -> dict[str, Any]:
    """``rows`` one per algorithm and fold; trivial predictors and published figures apart.

    ``made`` says where the whole comes from; every row says it of itself, since a resumed comparison has older ones.
    """
    return {
        "rows": [row for comparison in comparisons for row in comparison.rows],
        "trivial": [row for comparison in comparisons for row in comparison.trivial],
        "summary": [summary.to_dict() for comparison in comparisons for summary in comparison.summaries],
        "published": [asdict(row) for comparison in comparisons for row in comparison.published],
        "splits": {comparison.dataset: comparison.split for comparison in comparisons},
        "made": made,
    }


def to_csv(comparisons: Sequence[Comparison]) -> str:
    """A line per algorithm and fold, trivial predictors included."""
    rows = [row for comparison in comparisons for row in (*comparison.trivial, *comparison.rows)]
    groups = [{f"{group}_rmse": row["groups"][group]["rmse"] for group in GROUPS} for row in rows]
    return csv_table(_ROW, ({**row, **group, **row["ranking"]} for row, group in zip(rows, groups, strict=True)))


def to_markdown(comparisons: Sequence[Comparison]) -> str:
    """All tables of each data set, published figures below one's own."""
    parts: list[str] = []
    for comparison in comparisons:
        headings, rows = errors_table(comparison)
        empty = [""] * (len(headings) - 5)
        others = [[*row[:3], "", row[3], *empty] for row in published_table(comparison)[1]]
        parts += [f"## {comparison.title}\n", markdown_table(headings, rows + others)]
        parts += [markdown_table(*table) for table in details_tables(comparison)]
    return "\n".join(parts)


def details_tables(comparison: Comparison) -> list[Table]:
    """Tests, groups and ranking measures.

    A difference is a client's RMSE less the baseline's, negative where better; of NDCG@10, positive where better.
    """
    tests, judged = [], []
    for summary in comparison.summaries:
        test, list_test = summary.test, summary.list_test
        interval, p = test_cells(summary)
        numbers = [f"{test.difference:+.4f}", f"{test.clients:,}"] if test else ["", ""]
        tests.append([summary.algorithm, figure_cell(summary.figures["nmse"]), interval, *numbers, p])
        judged.append([f"{list_test.difference:+.4f}", f"{list_test.p:.2g}"] if list_test else ["", "baseline"])
    *others, (headings, lists) = measure_tables(comparison.summaries)
    of_errors: Table = (("algorithm", *SPARE[:2], "mean difference", "clients", "p"), tests)
    with_tests: Table = ((*headings, "difference", "p"), [row + more for row, more in zip(lists, judged, strict=True)])
    return [*([] if is_of_likes(comparison) else [of_errors]), *others, with_tests]


def measure_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Errors by group, where there are any, and measures of lists."""
    groups, ranking, lists, times = [], [], [], []
    for summary in summaries:
        name = LIST_NAMES.get(summary.algorithm, summary.algorithm)
        groups.append([summary.algorithm, *map(figure_cell, summary.groups.values())])
        ranking.append([name, *(figure_cell(summary.ranking[figure]) for figure in _SHOWN)])
        by_group = dict(summary.ranking_groups)
        times.append([name, *(figure_cell(by_group.pop(group)) for group in BY_TIME)])
        means = (*(summary.ranking[figure] for figure in _ALSO_SHOWN), *by_group.values())
        lists.append([name, *("–" if mean is None else f"{mean.mean:.4f}" for mean in means)])
    has_errors = any(summary.figures["rmse"] for summary in summaries)
    timed = any(summary.ranking_groups[group] for summary in summaries for group in BY_TIME)
    return [
        *([(("RMSE of", "few ratings", "tail items", "worst tenth"), groups)] if has_errors else []),
        (("ranking", "NDCG@10", "HR@10", "recall@10", "coverage@10"), ranking),
        *([(("NDCG@10 of what came", *BY_TIME), times)] if timed else []),
        (_LISTS, lists),
    ]


def published_table(comparison: Comparison) -> Table:
    """What others report."""
    rows = [
        [f"{row.system} ({row.source})", *("" if x is None else f"{x:.4f}" for x in (row.mae, row.rmse, row.nmse))]
        for row in comparison.published
    ]
    return ("published", "MAE", "RMSE", "NMSE"), rows
