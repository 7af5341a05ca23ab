"""Every file that can't be used is refused with file, line, value and remedy."""

from __future__ import annotations

import gzip
import io
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fedrecplus.data import FileOptions, load
from fedrecplus.errors import DataWarning, UserError

Write = Callable[..., str]
GOOD = "user,item,rating\n1,1,5\n2,2,3\n"
LIKES = "user,item\n1,1\n2,2\n"


def refusal(path: str, **options: Any) -> UserError:
    """The error that a file gives. It has a remedy, and nothing was written."""
    before = sorted(Path(path).parent.rglob("*"))
    with pytest.raises(UserError) as caught:
        load(path, options=FileOptions(**options))
    assert sorted(Path(path).parent.rglob("*")) == before
    assert caught.value.remedy
    assert path in caught.value.problem
    return caught.value


@pytest.mark.parametrize(
    ("lines", "place", "value"),
    [
        ("3,3,good\n", "line 4", "'good' is not a number"),
        ("3,3,nan\n", "line 4", "'nan' is not a number"),
        ("3,3,inf\n", "line 4", "'inf' is infinite"),
        ("3,3,-Infinity\n", "line 4", "'-Infinity' is infinite"),
        ("3,3,\n", "line 4", "the rating is missing"),
        (",3,4\n", "line 4", "the user is missing"),
        ("3,  ,4\n", "line 4", "the item is missing"),
        ("\n\n3,3,good\n", "line 6", "'good'"),
        ('"a\nb",3,4\n3,3,good\n', "line 6", "'good'"),
        ("3,3\n", "line 4", "2 columns where the first line has 3"),
        ("3,3,4,5\n", "line 4", "4 columns where the first line has 3"),
        ("3,3,4,,\n3,4,1\n", "line 4", "5 columns"),
        ("3,3,4,5\n3,3\n", "line 4", "4 columns"),
        ('3,"3,3",4,5\n', "line 4", "4 columns"),
        ("4,4,1\nnonsense\n", "line 5", "1 column where"),
        ('4,4,1\n3,"open,4\n5,5,5\n', "line 5", "columns"),
        ("2,2,4\n", "line 4", "user '2' rated item '2' before, on line 3"),
        (f"{LIKES}3,\n", "line 4", "the item is missing"),
        (f"{LIKES},3\n", "line 4", "the user is missing"),
        (f"{LIKES}3\n", "line 4", "1 column where the first line has 2"),
        (f"{LIKES}3,3,5\n", "line 4", "3 columns where the first line has 2"),
    ],
)
def test_a_bad_line_is_named(write: Write, lines: str, place: str, value: str) -> None:
    error = refusal(write(lines if lines.startswith("user") else GOOD + lines))
    assert f", {place}: " in error.problem
    assert value in error.problem


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ('{"user": 1, "item": 2, "rating": 3}\n\n{"user": 1, item: 2}\n', "line 3", "double quotes"),
        ('[{"user": 1, "item": 2, "rating": 3},\n{"user": 1, "item": 2]\n', "line 2", "delimiter"),
        ("[[1, 2, 3], [2, 2, 3]]", "line 1", "no table"),
        ('{"user": {"id": 1}, "item": 2, "rating": 3}\n{"user": {"id": 2}, "item": 2, "rating": 3}\n', "", "Struct"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 2, "item": 2, "rating": "good"}\n', "row 2", "'good'"),
        ('{"user": 1, "item": 2, "rating": 3}\n{"user": 2, "item": 2}\n', "row 2", "the rating is missing"),
    ],
)
def test_json_at_fault_is_named(write: Write, text: str, place: str, value: str) -> None:
    error = refusal(write(text, "reviews.json"))
    assert place in error.problem
    assert value in error.problem


def test_all_bad_lines_are_named_at_once(write: Write) -> None:
    dirty = write(GOOD + "1,2,good\n2,,3\n3,1,\n4,4\n5,1,2\n")
    error = refusal(dirty)
    for line, what in ((4, "'good'"), (5, "item is missing"), (6, "rating is missing"), (7, "2 columns")):
        assert f"line {line}: " in error.problem
        assert what in error.problem
    assert "4 of 7 rows are at fault" in error.problem
    assert "--on-error=skip" in error.remedy


def test_an_error_names_twenty_lines_and_counts_the_rest(write: Write) -> None:
    error = refusal(write(GOOD + "".join(f"{user},1,bad\n" for user in range(3, 53))))
    assert error.problem.count(", line ") == 20
    assert "50 of 52 rows" in error.problem


def test_what_is_missing_is_dropped_and_what_is_wrong_skipped_with_a_count(write: Write) -> None:
    missing, wrong = write(GOOD + "3,1,\n3,2,NA\n,2,4\n3,3,4\n"), write(GOOD + "3,1,good\n3,2\n3,3,4\n", "wrong.csv")
    with pytest.warns(DataWarning, match="3 of 6 rows are left out: .*1 with no user"):
        assert len(load(missing, options=FileOptions(missing="drop"))) == 3
    assert "line 4" in refusal(wrong, missing="drop").problem
    with pytest.warns(DataWarning, match="2 of 5 rows are left out: .*1 with other columns"):
        assert len(load(wrong, options=FileOptions(on_error="skip"))) == 3
    with pytest.warns(DataWarning, match="left out"):
        assert len(load(write(GOOD + "3,3,9\n"), options=FileOptions(scale="1:5:1", on_error="skip"))) == 2


def test_a_mark_for_no_rating_is_questioned(write: Write) -> None:
    marked = write(GOOD + "3,1,-99\n3,2,1\n")
    error = refusal(marked)
    assert "1 rating is -99, the others 1 to 5" in error.problem
    assert "--missing=drop" in error.remedy
    with pytest.warns(DataWarning, match="1 with -99 for a rating"):
        assert str(load(marked, options=FileOptions(missing="drop")).scale) == "1:5:1"
    assert load(marked, options=FileOptions(scale="-99:5:1")).scale.low == -99
    two_marks = write(GOOD + "3,1,-1\n3,2,1\n3,3,99999\n", "two.csv")
    with pytest.warns(DataWarning, match="1 with -1 for a rating, 1 with 99999 for a rating|1 with 99999.*1 with -1"):
        assert str(load(two_marks, options=FileOptions(missing="drop")).scale) == "1:5:1"
    assert str(load(write("user,item,rating\n1,1,-1\n2,2,1\n3,3,0\n")).scale) == "-1:1:1"


@pytest.mark.parametrize(
    ("ratings", "said"),
    [
        ([0, 0, 0, 0, 7, 8, 9, 10], r"50% are 0.*--scale 7:10:1 --on-error skip"),
        ([1, 1, 2, 3, 3, 5, 8, 294], "up to 294, half of them at most 3, look like counts.*--rating-column none"),
    ],
)
def test_numbers_that_may_be_no_ratings_are_questioned(write: Write, ratings: list[int], said: str) -> None:
    path = write("user,item,rating\n" + "".join(f"{row % 3},{row},{one}\n" for row, one in enumerate(ratings)))
    with pytest.warns(DataWarning, match=said):
        assert len(load(path)) == len(ratings)


def test_a_line_above_the_table_is_told_apart_from_broken_lines(write: Write) -> None:
    for options in ({}, {"on_error": "skip"}):
        assert "remove the first line" in refusal(write("# exported in 2024\n" + GOOD), **options).remedy
    assert "remove the first line" not in refusal(write(GOOD + "3,3\n")).remedy
    comma = refusal(write("ratings, as of May\nuserId,movieId,rating\n1,2,3\n"))
    assert "remove the lines above" in comma.remedy
    assert "'userId,movieId,rating'" in comma.problem


def test_of_many_columns_a_few_are_named(write: Write) -> None:
    table = "user," + ",".join(f"i{item}" for item in range(1000)) + "\n" + "5," * 1000 + "5\n"
    remedy = refusal(write(table)).remedy
    assert "'i18' and 981 more" in remedy
    assert "i19" not in remedy


def test_lines_are_counted_without_header_and_in_packed_files_too(write: Write) -> None:
    text = "1::1::5\n2::2::3\n3::3::x\n"
    assert "line 3" in refusal(write(text)).problem
    assert "line 3" in refusal(write(gzip.compress(text.encode()), "r.dat.gz")).problem


def test_of_several_duplicates_the_first_in_the_file_is_named(write: Write) -> None:
    error = refusal(write("5,5,1\n1,1,5\n1,1,4\n5,5,2\n1,1,3\n"))
    assert "line 3: user '1' rated item '1' before, on line 2" in error.problem
    assert "--duplicates" in error.remedy


def test_a_rating_off_the_given_scale_is_named(write: Write) -> None:
    path = write(GOOD + "3,3,4.5\n4,4,9\n")
    assert "line 4: rating 4.5 is not on the scale 1:5:1" in refusal(path, scale="1:5:1").problem
    assert "line 5: rating 9 " in refusal(path, scale="0.5:5:0.5").problem


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    assert "no such file" in refusal(str(tmp_path / "nowhere.csv")).problem
    assert "is a folder" in refusal(str(tmp_path)).problem


def test_of_a_folder_the_file_of_ratings_is_named_or_how_parts_are_joined(tmp_path: Path) -> None:
    for name in ("part-0.csv", "part-1.csv"):
        (tmp_path / name).write_text(GOOD)
    assert f"pl.read_csv('{tmp_path}/*.csv')" in refusal(str(tmp_path)).remedy
    (tmp_path / "ratings.csv").write_text(GOOD)
    assert refusal(str(tmp_path)).remedy.endswith(str(tmp_path / "ratings.csv"))


def test_the_layout_of_the_netflix_prize_is_named_and_the_remedy_makes_a_file_that_is_read(write: Write) -> None:
    path = write("1:\n7,3,2005-09-06\n8,5,2005-05-13\n2:\n7,4,2005-10-19\n")
    error = refusal(path)
    assert "Netflix" in error.problem
    command = error.remedy.partition(": ")[2].replace("FILES > ratings.csv", shlex.quote(path))
    lines = subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout
    ratings = load(write(lines, "joined.csv"))
    assert [ratings.item_ids.tolist(), ratings.client_ids.tolist(), ratings.values.tolist()] == [
        [1, 2],
        [7, 8],
        [3, 4, 5],
    ]


def test_where_no_line_is_a_rating_nobody_is_told_to_leave_all_of_them_out(write: Write) -> None:
    error = refusal(write("user,item,rating\n1,1,good\n2,2,bad\n"))
    assert "2 of 2 rows" in error.problem
    assert "skip" not in error.remedy


@pytest.mark.parametrize(
    "contents", ["", " \n\n", "user,item,rating\n", b"\xef\xbb\xbf\n", gzip.compress(b"", mtime=0)]
)
def test_a_file_without_ratings_is_refused(write: Write, contents: str | bytes) -> None:
    assert "empty" in (problem := refusal(write(contents)).problem) or "no ratings" in problem


def test_gzip_that_is_none_cut_short_or_changed_is_told_apart(write: Write) -> None:
    packed = gzip.compress(GOOD.encode() * 50)
    changed = packed[:-5] + bytes([packed[-5] ^ 1]) + packed[-4:]
    assert "not a gzip file" in refusal(write(GOOD, "r.csv.gz")).problem
    assert "truncated gzip" in refusal(write(packed[:-9], "r.csv.gz")).problem
    assert "truncated gzip" in refusal(write(packed[:15], "r.csv.gz")).problem
    assert "damaged gzip" in refusal(write(changed, "r.csv.gz")).problem


def test_what_is_no_table_of_several_users_and_items_is_told(write: Write) -> None:
    assert "zip archive" in refusal(write(b"PK\x03\x04 and so on")).problem
    assert "not a text file" in refusal(write(bytes(range(256)))).problem
    assert "1 column in the first line" in refusal(write("1\n3\n")).problem
    assert "single user, 7" in refusal(write("7,1,5\n7,2,3\n")).problem
    assert "single item, 'x'" in refusal(write("1,x,5\n2,x,3\n")).problem


def test_a_missing_column_is_told_with_those_that_are_there(write: Write) -> None:
    path = write("user,item,opinion\n1,1,5\n2,2,3\n")
    error = refusal(path)
    assert "no column has a usual name for the rating" in error.problem
    assert "'opinion'" in error.remedy
    assert "did you mean 'opinion'" in refusal(path, rating="opinoin").remedy
    assert "1 to 3" in refusal(path, rating=4).remedy
    assert "share a column" in refusal(path, rating="item").problem


def test_all_columns_that_have_to_be_named_are_told_at_once(write: Write) -> None:
    path = write("Benutzer,item,Note\n1,1,5\n2,2,3\n")
    assert "for the user, nor for the rating" in refusal(path).problem
    assert "--user-column NAME-OR-NUMBER, --rating-column NAME-OR-NUMBER" in refusal(path).remedy
    assert "for the rating" in refusal(path, user="Benutzer").problem


def test_bad_parquet_is_told(write: Write) -> None:
    def stored(**columns: Any) -> bytes:
        file = io.BytesIO()
        pl.DataFrame(columns).write_parquet(file)
        return file.getvalue()

    fine = stored(user=[1, 2], item=[1, 2], rating=[1.0, 2.0])
    assert "damaged Parquet" in refusal(write(fine[: len(fine) // 2], "r.parquet")).problem
    assert "row 2: the user is missing" in refusal(write(stored(user=[1, None], item=[1, 2], rating=[1, 2]))).problem
    nan = stored(user=[1, 2], item=[1, 2], rating=[1.0, float("nan")])
    assert "row 2: rating 'NaN' is not a number" in refusal(write(nan)).problem
    nobody = stored(user=[1.0, float("nan")], item=[1, 2], rating=[1, 2])
    assert "row 2: the user is missing" in refusal(write(nobody)).problem
    assert "no rows" in refusal(write(stored(user=[], item=[], rating=[]))).problem
    assert "holds List" in refusal(write(stored(user=[[1], [2]], item=[1, 2], rating=[1, 2]))).problem


@pytest.mark.parametrize("options", [{"duplicates": "men"}, {"scale": "1-5"}, {"separator": ""}])
def test_options_that_mean_nothing_are_refused_before_reading(options: dict[str, str]) -> None:
    with pytest.raises(UserError):
        FileOptions(**options)
