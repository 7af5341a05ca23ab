"""Files and frames as newcomers have them: packed, exported, rounded by a spreadsheet, in another form."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import fedrecplus as fr
from fedrecplus.data import FileOptions, Ratings, load
from fedrecplus.errors import DataWarning, UserError

Write = Callable[..., str]
TEXT = "user,item,rating\n1,10,5\n1,20,3\n2,10,1\n"
ROWS = [(1, 10, 5.0), (1, 20, 3.0), (2, 10, 1.0)]


def rows(ratings: Ratings) -> list[tuple[Any, ...]]:
    return list(ratings.to_frame().select("user", "item", "rating").iter_rows())


def refused(source: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        load(source)
    assert caught.value.remedy
    return caught.value


def zipped(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def tarred(text: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("ratings.csv")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def stored(write: Callable[[io.BytesIO], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def test_a_file_alone_in_a_zip_archive_is_read(write: Write) -> None:
    assert rows(load(write(zipped({"data/ratings.csv": TEXT})))) == ROWS
    assert rows(load(write(zipped({"ratings.csv": TEXT, "__MACOSX/._ratings.csv": "of macOS"})))) == ROWS


def test_a_zip_archive_of_several_files_and_a_damaged_one_are_refused(write: Write) -> None:
    assert "2 files: a.csv, b.csv" in refused(write(zipped({"a.csv": TEXT, "b.csv": TEXT}))).problem
    assert "damaged zip archive" in refused(write(zipped({"a.csv": TEXT})[:-9])).problem


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (bz2.compress(TEXT.encode()), "packed by bzip2"),
        (lzma.compress(TEXT.encode()), "packed by xz"),
        (tarred(TEXT), "a tar archive"),
        (stored(lambda file: np.save(file, np.eye(3))), "a NumPy array"),
        (stored(lambda file: pl.DataFrame({"user": [1]}).write_ipc(file)), "an Arrow (Feather) file"),
        (b"SQLite format 3\0" + bytes(84), "SQLite database"),
        ("<!DOCTYPE html>\n<html><body>404</body></html>\n", "HTML or XML"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "a pointer of Git LFS"),
        ("%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 5\n", "a sparse matrix"),
    ],
)
def test_what_is_no_table_is_called_by_its_name(write: Write, contents: str | bytes, said: str) -> None:
    assert said in refused(write(contents)).problem


def test_whole_numbers_that_pandas_wrote_as_decimals_are_the_same_ids_as_in_other_files(write: Write) -> None:
    ratings = write("user,item,rating\n1.0,10.0,5\n1.0,20.0,3\n2.0,10.0,1\n")
    films = write("item,title\n10,Dune\n20,Arrival\n", "films.csv")
    loaded = load(ratings, options=FileOptions(items=films))
    assert rows(loaded) == ROWS
    assert loaded.catalogue is not None
    assert loaded.catalogue.titles == ("Dune", "Arrival")
    versions = load(write("user,item,rating\nann,1.0,5\nann,1.10,3\nbob,2.0,1\n"))
    assert versions.item_ids.tolist() == ["1.0", "1.10", "2.0"]


def test_ids_that_a_spreadsheet_rounded_are_questioned(write: Write) -> None:
    path = write("user,isbn,rating\n1,9.78044E+12,5\n1,9.78067E+12,3\n2,9.78044E+12,1\n")
    with pytest.warns(DataWarning, match="a spreadsheet "):
        load(path)


def test_e_mail_addresses_are_users(write: Write) -> None:
    path = write("email,isbn,stars\nann@example.org,0034,5\nann@example.org,0035,3\nbob@example.org,0034,1\n")
    assert load(path).client_ids.tolist() == ["ann@example.org", "bob@example.org"]


def test_a_column_for_each_item_is_told_from_lines_of_ratings(write: Write) -> None:
    header = "user," + ",".join(f"film {item}" for item in range(12))
    assert "a column for each item" in refused(write(f"{header}\n" + "1" + ",5" * 12 + "\n")).remedy
    assert "12 columns and no header" in refused(write(("5,99," * 6)[:-1] + "\n" + ("99,4," * 6)[:-1] + "\n")).problem
    numbered = load(write("7,1,10,5" + ",0" * 8 + "\n8,2,20,3" + ",0" * 8 + "\n"), options=FileOptions(2, 3, 4))
    assert rows(numbered) == [(1, 10, 5.0), (2, 20, 3.0)]


def test_an_unusual_separator_is_asked_for(write: Write) -> None:
    assert "--separator" in refused(write(TEXT.replace(",", "^"))).remedy


def test_comments_above_the_table_are_told(write: Write) -> None:
    assert "line 3, 'user,item,rating'" in refused(write(f"# made\n# in 2024\n{TEXT}")).problem


def test_json_by_columns_and_with_nan_is_told(write: Write) -> None:
    by_columns = {"user": {"0": 1, "1": 2}, "item": {"0": 3, "1": 4}, "rating": {"0": 5, "1": 1}}
    assert "orient='records'" in refused(write(json.dumps(by_columns))).remedy
    assert "NaN is no JSON" in refused(write('[{"user": 1, "item": 2, "rating": NaN}]')).problem


def test_of_repeated_pairs_the_latest_counts_wherever_it_stands(write: Write) -> None:
    newest_first = "user,item,rating,time\n1,10,5,300\n1,10,1,100\n2,10,3,50\n2,20,4,60\n"
    ratings = load(write(newest_first), options=FileOptions(duplicates="last"))
    assert rows(ratings) == [(1, 10, 5.0), (2, 10, 3.0), (2, 20, 4.0)]
    clicks = load(write("user,item,time\n1,10,300\n1,20,200\n1,10,100\n2,10,50\n2,20,60\n"))
    assert clicks.timestamps is not None
    assert clicks.timestamps.tolist() == [300, 200, 50, 60]


def test_ids_in_the_index_of_a_frame_are_found() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": [1, 1, 2], "item": [10, 20, 10], "rating": [5.0, 3.0, 1.0]})
    assert rows(fr.from_frame(frame.set_index(["user", "item"]))) == ROWS
    assert rows(fr.from_frame(frame.set_index("user"))) == ROWS
    assert rows(fr.from_frame(frame.set_index("user", drop=False))) == ROWS


def test_an_id_that_is_not_a_number_is_missing() -> None:
    frame = pl.DataFrame({"user": [1.0, float("nan")], "item": [1, 2], "rating": [1.0, 2.0]})
    assert "row 2: the user is missing" in refused(frame).problem
