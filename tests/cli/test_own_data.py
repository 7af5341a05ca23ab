"""Commands on data of one's own: splits, a file to test on, a catalogue, columns that are said."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from tests.cli.refusing import refused

SHORT = ["--set", "server.rounds=2", "--algorithm", "fedmf"]
TRIVIAL = ["compare", "--algorithm", "global-mean", "--workers", "1", "--json", "c.json"]


def done(*arguments: str) -> None:
    assert exit_code_of(list(arguments)) == 0


@pytest.fixture(autouse=True)
def timed(here: Path) -> pl.DataFrame:
    frame = pl.read_csv(here / "ratings.csv")
    count = len(frame)
    frame = frame.with_columns(
        timestamp=pl.Series([(at * 7919) % count for at in range(count)]),
        part=pl.Series(["test" if at % 5 == 0 else "train" for at in range(count)]),
    )
    frame.write_csv(here / "timed.csv")
    frame.filter(pl.col("part") == "train").drop("part").write_csv(here / "train.csv")
    frame.filter(pl.col("part") == "test").drop("part").write_csv(here / "test.csv")
    return frame


@pytest.mark.parametrize("how", ["user", "time:0.1", "last:2", "cold-users", "cold-items"])
def test_train_takes_a_split_and_resumes_with_it(how: str) -> None:
    done("train", "--dataset", "timed.csv", "--split", how, *SHORT, "--out", "run")
    result = json.loads(Path("run/result.json").read_text())
    training, test = fr.split("timed.csv", how=how)
    assert (result["train_ratings"], result["test_ratings"]) == (len(training), len(test))
    assert json.loads(Path("run/data.json").read_text())["split"] == how
    (Path("run") / "result.json").unlink()
    done("train", "--resume", "--out", "run")
    assert json.loads(Path("run/result.json").read_text())["rmse"] == result["rmse"]


def test_a_file_to_test_on_and_a_column_of_folds_give_the_same() -> None:
    done("train", "--dataset", "train.csv", "--test", "test.csv", *SHORT, "--out", "file")
    done("train", "--dataset", "timed.csv", "--fold-column", "part", *SHORT, "--out", "column")
    file, column = (json.loads(Path(name, "result.json").read_text()) for name in ("file", "column"))
    assert file["test_ratings"] == column["test_ratings"] > 0
    assert file["rmse"] == pytest.approx(column["rmse"], rel=0.02)  # cold items are numbered otherwise
    by_frame = fr.train(pl.read_csv("train.csv"), pl.read_csv("test.csv"), fr.load_config("file/config.toml"))
    assert by_frame.rmse == file["rmse"]


def test_cold_ratings_are_counted_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    done("train", "--dataset", "timed.csv", "--split", "cold-users", *SHORT, "--out", "run")
    tested = json.loads(Path("run/result.json").read_text())["test_ratings"]
    assert f"note: {tested} of {tested} test ratings are of users or items without" in capsys.readouterr().err


def test_compare_takes_splits_with_one_fold_and_with_several() -> None:
    for how, folds in (("time", 1), ("last", 1), ("cold-users", 3)):
        done(*TRIVIAL, "--dataset", "timed.csv", "--split", how, "--folds", "3")
        assert len(json.loads(Path("c.json").read_text())["rows"]) == folds
    done(*TRIVIAL, "--dataset", "train.csv", "--test", "test.csv")
    [row] = json.loads(Path("c.json").read_text())["rows"]
    assert row["rmse"] == fr.compare("train.csv", ["global-mean"], test="test.csv", workers=1).rows[0]["rmse"]


def test_a_second_file_gives_the_lists_their_titles(timed: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    items = timed["movieId"].unique()
    pl.DataFrame({"movieId": items, "title": [f"film {one} (1999)" for one in items]}).write_csv("films.csv")
    done("train", "--dataset", "timed.csv", "--items", "films.csv", *SHORT, "--out", "run", "--full")
    capsys.readouterr()
    done("recommend", "run", "--client", str(timed["userId"][0]), "-n", "2")
    assert capsys.readouterr().out.count("\nfilm ") == 2


def test_names_of_the_items_columns_are_not_looked_for_in_the_test(timed: pl.DataFrame) -> None:
    items = timed["movieId"].unique()
    pl.DataFrame({"movieId": items, "called": [f"film {one}" for one in items]}).write_csv("films.csv")
    described = ["--items", "films.csv", "--title-column", "called"]
    done("train", "--dataset", "train.csv", "--test", "test.csv", *described, *SHORT, "--out", "run")
    assert json.loads(Path("run/data.json").read_text())["test"] == str(Path("test.csv").resolve())
    (Path("run") / "result.json").unlink()
    done("train", "--resume", "--out", "run")


def test_a_doubtful_column_is_said_before_training(timed: pl.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    timed.with_columns(score=pl.lit(3)).write_csv("doubtful.csv")
    done("train", "--dataset", "doubtful.csv", *SHORT, "--out", "run")
    said = capsys.readouterr().err
    assert "note: doubtful.csv: 'rating' is taken for the rating, though 'score' could be meant" in said
    assert said.index("note:") < said.index("round")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--split", "tim"], "did you mean 'time'"),
        (["--split", "time"], "has no times to split by"),
        (["--split", "column"], "names no folds"),
        (["--split", "user", "--test", "test.csv"], "give one of them"),
        (["--full", "--test", "test.csv"], "give one of them"),
        (["--fold-column", "parts"], "no column 'parts'"),
        (["--items", "films.csv"], "films.csv: there is no such file"),
        (["--split", "user", "--fold", "7"], "no fold 7"),
    ],
)
def test_what_cannot_be_is_refused(
    arguments: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(["train", "--dataset", "ratings.csv", *SHORT, *arguments], said, here, capsys)


def test_published_figures_stand_beside_random_folds_alone(
    timed: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    ratings = fr.Ratings(**{**vars(fr.load("timed.csv")), "name": "ml-100k"})
    found = [fr.compare(ratings, ["global-mean"], split=how, folds=2, workers=1) for how in ("random", "last:1")]
    assert [bool(one.published) for one in found] == [True, False]
    assert [one.title for one in found] == ["ml-100k", "ml-100k, split last:1"]
    done(*TRIVIAL, "--dataset", "timed.csv", "--split", "last:1")
    assert "timed.csv, split last:1" in capsys.readouterr().out
    assert json.loads(Path("c.json").read_text())["splits"] == {"timed.csv": "last:1"}
    done(*TRIVIAL, "--dataset", "train.csv", "--test", "test.csv")
    assert "train.csv, split column" in capsys.readouterr().out
