"""Comparisons: rows, statistics against scipy and by hand, trivial predictors, reports."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fedrecplus as fr
from fedrecplus.config import assign, preset
from fedrecplus.data.splits import split
from fedrecplus.errors import UserError
from fedrecplus.experiments.comparison import Comparison, comparison_notes, to_csv, to_json, to_markdown
from fedrecplus.experiments.cross_validation import compare
from fedrecplus.experiments.statistics import client_means, fold_mean, paired_test
from fedrecplus.experiments.trivial import bias_only, global_mean, learned_ridges
from fedrecplus.training.evaluation import Fallback
from fedrecplus.training.ranking import rank
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
CONFIGS = [assign(preset(name), ["server.rounds=4"]) for name in ("fedmf", "fedrec", "pmf")]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(RATINGS, CONFIGS, folds=3, workers=2)


def test_there_is_a_row_per_algorithm_and_fold(comparison: Comparison) -> None:
    pairs = [(row["algorithm"], row["fold"]) for row in comparison.rows]
    assert pairs == [(name, fold) for name in ("fedmf", "fedrec", "pmf") for fold in range(3)]
    assert {row["algorithm"] for row in comparison.trivial} == {"global-mean", "bias-only"}


def test_a_row_is_what_a_training_on_that_fold_gives(comparison: Comparison) -> None:
    run = fr.train(*split(RATINGS, 2, folds=3), CONFIGS[1])
    row = next(row for row in comparison.rows if (row["algorithm"], row["fold"]) == ("fedrec", 2))
    assert row["rmse"] == run.rmse
    assert row["config"] == run.result["config"]


def test_workers_and_order_change_nothing(comparison: Comparison) -> None:
    alone = compare(RATINGS, CONFIGS[::-1], folds=3, workers=1)
    for name in ("fedmf", "fedrec", "pmf"):
        assert alone.mean(name) == comparison.mean(name)


def test_the_baseline_is_not_tested_against_itself(comparison: Comparison) -> None:
    tests = {summary.algorithm: summary.test for summary in comparison.summaries}
    assert tests["fedmf"] is None
    assert tests["fedrec"].baseline == "fedmf"
    assert 0 <= tests["fedrec"].p <= 1


def test_a_comparison_leaves_run_folders_and_resumes_from_them(tmp_path: Path) -> None:
    first = compare(RATINGS, CONFIGS[:1], folds=2, out=tmp_path)
    before = (tmp_path / "fedmf" / "fold-1" / "result.json").stat().st_mtime_ns
    again = compare(RATINGS, CONFIGS[:1], folds=2, out=tmp_path, resume=True)
    assert again.rows == first.rows
    assert (tmp_path / "fedmf" / "fold-1" / "result.json").stat().st_mtime_ns == before


def test_reports_hold_every_row(comparison: Comparison) -> None:
    as_json = to_json([comparison])
    assert as_json["rows"] == comparison.rows
    assert as_json["published"] == []
    lines = list(csv.DictReader(io.StringIO(to_csv([comparison]))))
    assert len(lines) == len(comparison.rows) + len(comparison.trivial)
    assert float(lines[-1]["rmse"]) == comparison.rows[-1]["rmse"]
    assert float(lines[-1]["worst_tenth_rmse"]) == comparison.rows[-1]["groups"]["worst_tenth"]["rmse"]
    assert float(lines[-1]["ndcg@10"]) == comparison.rows[-1]["ranking"]["ndcg@10"]
    tables = to_markdown([comparison]).strip().split("\n\n")[1:]
    assert len(tables) == 5
    for table in tables:
        assert "| fedrec |" in table
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_groups_and_ranking_are_summed_up_over_folds(comparison: Comparison) -> None:
    for summary in comparison.summaries:
        rows = [row for row in comparison.rows + comparison.trivial if row["algorithm"] == summary.algorithm]
        worst = [row["groups"]["worst_tenth"]["rmse"] for row in rows]
        assert summary.groups["worst_tenth"] == fold_mean(worst)
        assert summary.ranking["ndcg@10"] == fold_mean([row["ranking"]["ndcg@10"] for row in rows])
        assert summary.to_dict()["groups"]["worst_tenth"]["rmse"]["mean"] == pytest.approx(np.mean(worst))
        assert min(worst) > summary.figures["rmse"].mean


def test_lists_are_tested_against_the_baseline_s_client_by_client(comparison: Comparison) -> None:
    by_fold: dict[str, list[np.ndarray]] = {"fedmf": [], "fedrec": []}
    for fold in range(3):
        training, test = split(RATINGS, fold, folds=3)
        for config in CONFIGS[:2]:
            run = fr.train(training, test, config)
            by_fold[config.algorithm].append(fr.evaluate(run, training, test, at=(10,)).ndcg_by_client)
    own, baseline = (client_means(by_fold[name]) for name in ("fedrec", "fedmf"))
    there = np.isfinite(own) & np.isfinite(baseline)
    found = {summary.algorithm: summary for summary in comparison.summaries}["fedrec"].list_test
    assert found.p == pytest.approx(stats.wilcoxon(own[there] - baseline[there]).pvalue)
    assert found.difference == pytest.approx((own[there] - baseline[there]).mean())
    assert comparison.summaries[2].list_test is None, "the baseline"


def test_a_mean_is_asked_for_by_name(comparison: Comparison) -> None:
    rows = [row["ranking"]["map@5"] for row in comparison.rows if row["algorithm"] == "pmf"]
    assert comparison.mean("pmf", "map@5") == pytest.approx(np.mean(rows))
    with pytest.raises(UserError, match="unknown figure"):
        comparison.mean("pmf", "rmsd")
    with pytest.raises(UserError, match="unknown algorithm"):
        comparison.mean("fedmv")


def test_what_nobody_asked_for_is_said_and_popularity_has_its_name() -> None:
    found = compare(RATINGS, ["popularity", "fedrec++"], folds=2)
    said = " ".join(comparison_notes(found))
    assert "global-mean and bias-only are added to every comparison" in said
    assert "a better list than those of fedrec++" in said
    by_name = {summary.algorithm: summary for summary in found.summaries}
    assert by_name["popularity"].ranking == by_name["global-mean"].ranking
    assert "| global-mean (popularity) |" in to_markdown([found])


def test_algorithms_that_differ_in_what_is_relevant_can_t_be_compared() -> None:
    other = assign(CONFIGS[1], ["evaluation.relevant_from=3"])
    with pytest.raises(UserError, match="relevant_from"):
        compare(RATINGS, [CONFIGS[0], other], folds=2)
    found = compare(RATINGS, [other], folds=2)
    assert {row["ranking"]["relevant_from"] for row in found.rows + found.trivial} == {3.0}


def test_a_group_without_test_ratings_has_no_error() -> None:
    no_tail = compare(small_ratings(clients=10, items=2), ["global-mean"], folds=2)
    assert no_tail.summaries[0].groups["tail_items"] is None
    assert to_json([no_tail])["summary"][0]["groups"]["tail_items"] == {"rmse": None}
    assert "| – |" in to_markdown([no_tail])


def test_the_global_mean_recommends_what_is_popular() -> None:
    training, test = split(RATINGS, 0)
    found = rank(training, test, global_mean(training), Fallback.of(training))
    popularity = training.item_counts()
    hits = []
    for client in range(RATINGS.clients):
        items, ratings = test.of(client)
        rest = np.setdiff1d(np.arange(RATINGS.item_count), training.of(client)[0])
        best = rest[np.lexsort((rest, -popularity[rest]))][:10]
        if (ratings >= 4).any():
            hits.append(np.isin(items[ratings >= 4], best).any())
    assert found["hr@10"] == pytest.approx(np.mean(hits))


def test_the_interval_is_student_s_interval() -> None:
    values = [0.9, 0.95, 0.92, 0.91]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    found = fold_mean(values)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert fold_mean([0.9]).sd is None


def test_the_paired_test_is_wilcoxon_s_over_clients_with_test_ratings() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=50), rng.normal(size=50) + 0.3
    one[3] = np.nan
    found = paired_test(one, other, "other")
    there = np.arange(50) != 3
    assert found.p == stats.wilcoxon(one[there], other[there]).pvalue
    assert found.clients == 49
    assert paired_test(one, one, "itself").p == 1.0


def test_errors_are_averaged_over_the_folds_a_client_is_in() -> None:
    means = client_means([np.array([1.0, np.nan, np.nan]), np.array([3.0, 2.0, np.nan])])
    np.testing.assert_array_equal(means, [2.0, 2.0, np.nan])


def test_ridges_of_biases_are_learned_and_are_wide_where_people_and_items_are_all_alike() -> None:
    rng = np.random.default_rng(0)
    rows = [(user, item, rng.integers(1, 6)) for user in range(150) for item in rng.choice(60, 8, replace=False)]
    alike = fr.load(pd.DataFrame(rows, columns=["user", "item", "rating"]))
    assert learned_ridges(alike) in [(15.0, 10.0), (10.0, 10.0), (5.0, 25.0)]
    differing = alike.where(alike.items < 2)
    assert learned_ridges(differing.where(np.arange(len(differing)) < 50)) == (5.0, 10.0), "too few to choose by"


def test_biases_beat_the_global_mean_on_training_ratings() -> None:
    clients, items, truth = RATINGS.client_of_rating, RATINGS.items, RATINGS.standard_values
    errors = [np.std(predictor(RATINGS).predict(clients, items) - truth) for predictor in (global_mean, bias_only)]
    assert errors[1] < errors[0] == pytest.approx(truth.std())
