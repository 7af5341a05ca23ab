"""Names, and a user's own files that can be read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fedrecplus.data import FileOptions, Ratings, Scale, load
from fedrecplus.errors import UserError

Write = Callable[..., str]
Triple = tuple[Any, Any, float]


def triples(ratings: Ratings) -> list[Triple]:
    """What was read, in the ids of the file."""
    clients = ratings.client_ids[ratings.client_of_rating].tolist()
    return list(zip(clients, ratings.item_ids[ratings.items].tolist(), ratings.values.tolist(), strict=True))


EXPECTED: list[Triple] = [(1, 10, 5.0), (1, 20, 3.0), (2, 10, 1.0)]


@pytest.mark.parametrize(
    "text",
    [
        "userId,movieId,rating,timestamp\n2,10,1,0\n1,10,5,0\n1,20,3,0\n",
        "1,10,5\n1,20,3\n2,10,1\n",
        "1\t10\t5\t99\n1\t20\t3\t99\n2\t10\t1\t99",
        "1::10::5::99\n1::20::3::99\n2::10::1::99\n",
        "1;10;5.0\n1;20;3.0\n2;10;1.0\n",
        "1 10 5\n1 20 3\n2 10 1\n",
        "1|10|5\n1|20|3\n2|10|1\n",
        "stars,item,user\n5,10,1\n3,20,1\n1,10,2\n",
        "user_id:token\titem_id:token\trating:float\n1\t10\t5\n1\t20\t3\n2\t10\t1\n",
        '"User-ID";"ISBN";"Book-Rating"\n"1";"10";"5"\n"1";"20";"3"\n"2";"10";"1"\n',
        "\ufeffuid,book_id,score\r\n1,10,5\r\n1,20,3\r\n2,10,1\r\n",
        'user;item;rating\n"1";10;5,0\n1;20;3\n2;10;1,000\n',
        "\n\nuser, item, rating\n\n1, 10, 5\n1, 20, 3\n\n\n2, 10, 1\n\n",
        "1,10,5\r1,20,3\r2,10,1\r",
        'user,title,review,rating\n1,10,"good,\n\nvery good",5\n1,20,"",3\n2,10,"say ""no""",1\n',
        "user,item,rating,note\n1,10,5,\n1,20,3,so-so\n2,10,1,\x1e\x1f\n",
        '{"overall": 5.0, "reviewerID": 1, "asin": "10", "style": {"a": 1}}\n'
        '{"asin": "20", "overall": 3, "reviewerID": 1, "text": "so \\"so\\""}\n\n'
        '{"reviewerID": 2, "asin": "10", "overall": 1}',
        ' [\n {"user": 1, "item": 10, "rating": 5},\n {"user": 1, "item": 20, "rating": 3}, '
        '{"user": 2, "item": 10, "rating": 1}]',
    ],
)
def test_usual_files_need_no_options(write: Write, text: str) -> None:
    ratings = load(write(text))
    assert triples(ratings) == EXPECTED
    assert ratings.scale == Scale(1, 5, 1)


def test_the_ending_does_not_matter(write: Write) -> None:
    text = "1,10,5\n1,20,3\n2,10,1\n"
    assert triples(load(write(gzip.compress(text.encode()), "a.csv.gz"))) == EXPECTED
    assert triples(load(write(gzip.compress(text.encode()), "a.csv"))) == EXPECTED
    assert triples(load(write(text, "ratings"))) == EXPECTED


@pytest.mark.parametrize("packed", [False, True])
def test_parquet_is_read_like_text(write: Write, packed: bool) -> None:
    frame = pl.DataFrame(
        {
            "when": [0, 0, 0],
            "stars": pl.Series([4.1, 3.7, 0.0], dtype=pl.Float32),
            "movie": ["b", "a", "b"],
            "user": [1.0, 1.0, 2.0],
        }
    )
    file = io.BytesIO()
    frame.write_parquet(file)
    contents = gzip.compress(file.getvalue()) if packed else file.getvalue()
    ratings = load(write(contents, "r.parquet.gz" if packed else "r.parquet"), options=FileOptions(scale="0:5:0.1"))
    assert [triple[:2] for triple in triples(ratings)] == [(1, "a"), (1, "b"), (2, "b")]
    assert np.allclose(ratings.values, [3.7, 4.1, 0.0])


@pytest.mark.parametrize(
    "options",
    [
        {"user": "who", "item": "what", "rating": "liking"},
        {"user": 3, "item": 1, "rating": 2},
        {"user": "3", "item": "what", "rating": "2"},
    ],
)
def test_columns_can_be_given_by_name_or_position(write: Write, options: dict[str, Any]) -> None:
    path = write("what,liking,who\n10,5,1\n20,3,1\n10,1,2\n")
    assert triples(load(path, options=FileOptions(**options))) == EXPECTED


def test_separators_can_be_given_and_columns_of_a_headerless_file_by_position(write: Write) -> None:
    path = write("10#5#1\n20#3#1\n10#1#2\n")
    assert triples(load(path, options=FileOptions(user=3, item=1, rating=2, separator="#"))) == EXPECTED
    path = write("1<>10<>5\n1<>20<>3\n2<>10<>1\n")
    assert triples(load(path, options=FileOptions(separator="<>"))) == EXPECTED
    path = write("1   10   5\n1   20   3 \n 2  10   1\n")
    assert triples(load(path)) == EXPECTED
    path = write("1,a\t10\t5\n1,a\t20\t3\n2,a\t10\t1\n")
    assert load(path, options=FileOptions(separator="tab")).client_ids.tolist() == ["1,a", "2,a"]


def test_ids_that_are_not_plain_integers_stay_as_they_are_written(write: Write) -> None:
    ratings = load(write("007,034545104X,5\n7,x:y,3\n"))
    assert ratings.client_ids.tolist() == ["007", "7"]
    assert ratings.item_ids.tolist() == ["034545104X", "x:y"]


def test_text_that_is_not_utf_8_is_read_too(write: Write) -> None:
    text = "user,item,rating\nZoë,1,5\nann,2,3\n"
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32"):
        assert load(write(text.encode(encoding))).client_ids.tolist() == ["Zoë", "ann"]


def test_a_given_scale_is_taken_and_the_inferred_one_not(write: Write) -> None:
    path = write("1,1,5\n2,2,3\n")
    assert load(path, options=FileOptions(scale="0:10:0.5")).scale == Scale(0, 10, 0.5)
    assert load(path, options=FileOptions(scale=Scale(0, 10, 0.5))).values.tolist() == [5.0, 3.0]


def test_of_duplicates_the_last_or_the_mean_can_be_kept(write: Write) -> None:
    path = write("1,1,5\n2,2,3\n1,1,2\n2,1,4\n1,1,3\n2,2,4\n")
    assert load(path, options=FileOptions(duplicates="last")).values.tolist() == [3.0, 4.0, 4.0]
    # (5 + 2 + 3) / 3 is nearest to 3; (3 + 4) / 2 lies between two levels and goes up
    assert load(path, options=FileOptions(duplicates="mean")).values.tolist() == [3.0, 4.0, 4.0]


def test_types_are_as_narrow_as_the_values_allow(write: Write) -> None:
    few = load(write("1,1,5\n2,2,3\n"))
    assert (few.items.dtype.name, few.codes.dtype.name) == ("uint16", "uint8")
    fine = load(write("1,1,-10\n2,2,3.01\n3,3,10\n"))
    assert fine.codes.dtype.name == "uint16"


@pytest.mark.parametrize("path", ["nowhere.csv", "./ml-100k", "no/where"])
def test_what_looks_like_a_path_is_a_missing_file(path: str) -> None:
    with pytest.raises(UserError, match="no such file"):
        load(path)


def test_a_file_in_this_folder_needs_no_ending(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("1,1,5\n2,2,3\n", "mine")
    monkeypatch.chdir(tmp_path)
    assert load("mine").name == "mine"


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Z"]), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(
    cells=st.dictionaries(st.tuples(words, words), st.integers(1, 5), min_size=2, max_size=20).filter(
        lambda cells: all(len({pair[side] for pair in cells}) > 1 for side in (0, 1))
    ),
    shape=st.sampled_from(["csv", "tsv", "::", "parquet"]),
)
def test_what_is_written_is_what_is_read(write: Write, cells: dict[tuple[str, str], int], shape: str) -> None:
    frame = pl.DataFrame(
        [(user, item, rating) for (user, item), rating in cells.items()],
        schema=["user", "item", "rating"],
        orient="row",
    )
    file = io.BytesIO()
    if shape == "parquet":
        frame.write_parquet(file)
    elif shape == "::":
        if any(":" in name for pair in cells for name in pair):
            return
        file.write(b"user::item::rating\n")
        file.writelines(f"{user}::{item}::{rating}\n".encode() for user, item, rating in frame.rows())
    else:
        frame.write_csv(file, separator="," if shape == "csv" else "\t")
    ratings = load(write(file.getvalue()), options=FileOptions(scale="1:5:1"))
    assert {(str(user), str(item)): rating for user, item, rating in triples(ratings)} == cells


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["1,200", "900", "12"], [1200, 900, 12]),
        (["1,000,000", "3,000,000", "5,000,000"], [1e6, 3e6, 5e6]),
        (["1,234.5", "2,000", "5"], [1234.5, 2000.0, 5.0]),
        (["3,125", "4", "5"], [3.125, 4, 5]),
        (["3,5", "100", "5"], [3.5, 100, 5]),
    ],
)
def test_commas_are_decimal_unless_the_file_shows_that_they_part_thousands(
    write: Write, written: list[str], meant: list[float]
) -> None:
    rows = "".join(f'{row},{row},"{rating}"\n' for row, rating in enumerate(written))
    assert [rating for *_, rating in triples(load(write("user,item,rating\n" + rows)))] == meant
