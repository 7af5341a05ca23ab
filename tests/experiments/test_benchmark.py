"""Benchmarks by name, on small files in the place of the published ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign
from fedrecplus.errors import UserError
from fedrecplus.experiments import BENCHMARKS, benchmark_named, published_for, systems, task_of
from fedrecplus.experiments.baselines import ease, ease_by_recency, ials, recent_popularity
from fedrecplus.experiments.benchmark import BenchmarkTask, _trained
from fedrecplus.training import Fallback, Predictor, ranking, sampled_ranking
from tests.small_data import small_ratings
from tests.training.test_recency import CONFIG, walks


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set in the form of Monti's, and NCF's lists of negatives over a small ML-1M."""
    frame = small_ratings(clients=40).to_frame().with_row_index("row")
    marked = frame.with_columns(test=(pl.col("row") % 5 == 0).cast(pl.Int8)).drop("row")
    marked.write_csv(tmp_path / "monti-douban.csv")
    frame.drop("row").write_csv(tmp_path / "ml-1m.csv")
    last = frame.group_by("user", maintain_order=True).last()
    rated = {user: set(own["item"]) for (user,), own in frame.group_by("user")}
    others = [" ".join(str(item) for item in range(40) if item not in rated[user]) for user in last["user"]]
    last.with_columns(negatives=pl.Series(others)).drop("row").write_csv(tmp_path / "ml-1m-ncf-test.csv")
    return tmp_path


def test_a_table_has_ours_peers_and_what_was_published_and_goes_into_a_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = folder / "page.md"
    command = ["benchmark", "monti-douban", "--data", str(folder), "--only", "biases,fedmf", "--page", str(page)]
    assert exit_code_of(command) == 0
    assert "IGMC" in capsys.readouterr().out
    first = page.read_text()
    assert exit_code_of(command) == 0
    assert page.read_text().count("## monti-douban") == first.count("## monti-douban") == 1
    assert str(folder) not in first


def test_fixed_negatives_are_those_of_the_file(folder: Path) -> None:
    task = task_of(benchmark_named("ncf-ml-1m"), 0, folder)
    assert task.negatives is not None
    assert len(task.test) == int((np.diff(task.test.indptr) > 0).sum()) == 40
    for client in range(40):
        own = set(task.training.of(client)[0].tolist()) | set(task.test.of(client)[0].tolist())
        assert set(task.negatives[client].tolist()) - {-1} == set(range(task.training.item_count)) - own


def test_peers_rank_what_was_chosen_above_what_was_not(folder: Path) -> None:
    task = task_of(benchmark_named("ncf-ml-1m"), 0, folder)
    everything = Fallback.of(task.training).knowing_everything()
    for predictor in (ease(task.training), ials(task.training, factors=8)):
        figures = sampled_ranking(task.training, task.training, predictor, everything, 99, 0, task.negatives)
        assert figures["sampled_hr@10"] > 0.5


def test_what_is_not_there_is_said_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"monti-yahoo-music\.csv is not in") as error:
        task_of(benchmark_named("monti-yahoo"), 0, tmp_path)
    assert "gc-mc" in error.value.remedy
    with pytest.raises(UserError, match="unknown benchmark"):
        benchmark_named("netflix")


def test_leaky_rows_stand_beside_honest_ones_where_figures_were_published_so() -> None:
    leaky = {name: [row for row in systems(one) if "leaky" in row] for name, one in BENCHMARKS.items()}
    assert leaky.pop("ml-100k-last") == ["pfedrec (leaky negatives)", "fedrap (leaky negatives)"]
    assert not any(leaky.values())
    assert {"fedncf", "pfedrec", "fedrap", "fedrecon"} < systems(benchmark_named("ncf-ml-1m")).keys()


def test_rows_of_what_comes_next_follow_what_was_chosen_last() -> None:
    training, test = fr.split(walks(), how="last:1")
    task = BenchmarkTask(training, test, seed=0, how="last:1")
    follows, plain = (_trained(task, assign(CONFIG, [f"model.recency={decay}"])) for decay in (3, 0))
    assert follows["full_ndcg"] > plain["full_ndcg"] + 0.1
    assert follows["sampled_ndcg@10"] > plain["sampled_ndcg@10"]


def test_peers_of_what_comes_next_know_the_order_too() -> None:
    training, test = fr.split(walks(), how="last:1")
    everything = Fallback.of(training).knowing_everything()

    def ndcg(predictor: Predictor) -> float:
        return float(ranking.rank(training, test, predictor, everything, (10,), 1.0)["ndcg@10"])

    assert ndcg(ease_by_recency(training, ridge=5.0)) > ndcg(ease(training, ridge=5.0)) + 0.1
    assert training.timestamps is not None
    latest = training.items[training.timestamps >= np.quantile(training.timestamps, 0.9)]
    shown = recent_popularity(training).scores(np.array([0]))[0]
    np.testing.assert_array_equal(shown, np.bincount(latest, minlength=training.item_count))
    assert {"recent popularity", "EASE by recency"} < systems(benchmark_named("ml-100k-last")).keys()


def test_attention_to_what_came_before_ranks_what_comes_next() -> None:
    sasrec = pytest.importorskip("fedrecplus.experiments.sasrec", exc_type=ImportError).sasrec
    training, test = fr.split(walks(), how="last:1")
    everything = Fallback.of(training).knowing_everything()
    fitted = sasrec(training, width=16, blocks=1, length=8, dropout=0.1, most_epochs=30, look_every=15)
    ndcg = [
        ranking.rank(training, test, predictor, everything, (10,), 1.0)["ndcg@10"]
        for predictor in (fitted, recent_popularity(training))
    ]
    assert ndcg[0] > ndcg[1] + 0.1


def test_every_benchmark_has_published_figures_with_a_source() -> None:
    for name in BENCHMARKS:
        assert published_for(name)
        assert all(row["source"] for row in published_for(name))
