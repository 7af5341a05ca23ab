"""What people's files hold besides: catalogues of their own, Excel's habits, likes, and columns one can mistake."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from fedrecplus.data import FileOptions, Ratings, from_frame, load, split
from fedrecplus.errors import DataWarning, UserError
from fedrecplus.training import train

Write = Callable[..., str]
RATINGS = "user,item,rating\n1,10,5\n1,20,3\n2,10,1\n"


def catalogue(ratings: Ratings) -> dict[int, tuple[str, int, set[str]]]:
    found = ratings.catalogue
    assert found is not None
    genres = [{found.genre_names[at] for at in np.flatnonzero(row)} for row in found.genres]
    rows = zip(found.titles, found.years.tolist(), genres, strict=True)
    return dict(zip(ratings.item_ids.tolist(), rows, strict=True))


@pytest.mark.parametrize(
    "items",
    [
        "item,title,genres,year\n20,Heat,Crime|Drama,1995\n10,Alien,Horror,1979\n30,Else,Other,1990\n",
        "movieId,title,genres\n20,Heat (1995),Drama|Crime\n10,Alien (1979),Horror\n",
        "20::Heat (1995)::Drama|Crime\n10::Alien (1979)::Horror\n",
        "year;name;id_;category\n1995;Heat;20;Drama, Crime\n1979;Alien;10;Horror\n",
    ],
)
def test_a_second_file_tells_what_the_items_are(write: Write, items: str) -> None:
    item = "id_" if "id_" in items else None
    options = FileOptions(items=write(items, "items.csv"), item=item)
    path = write(RATINGS.replace("item", "id_") if item else RATINGS)
    expected = {10: ("Alien", 1979, {"Horror"}), 20: ("Heat", 1995, {"Crime", "Drama"})}
    assert catalogue(load(path, options=options)) == expected


def test_items_that_the_file_does_not_list_are_unknown(write: Write) -> None:
    found = catalogue(load(write(RATINGS), options=FileOptions(items=write("item,title\n10,Alien\n", "items.csv"))))
    assert found == {10: ("Alien", 0, set()), 20: ("", 0, set())}


def test_columns_of_the_ratings_tell_it_too(write: Write) -> None:
    lines = "user,item,rating,title,genres,year\n1,10,5,Alien,Horror,1979\n1,20,3,Heat,,\n2,10,1,Alien,Horror,1979\n"
    assert catalogue(load(write(lines))) == {10: ("Alien", 1979, {"Horror"}), 20: ("Heat", 0, set())}


def test_lists_of_genres_in_a_frame() -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [1, 5], "genres": [["a", "b"], []]})
    assert catalogue(from_frame(frame)) == {1: ("", 0, {"a", "b"}), 2: ("", 0, set())}
    items = pl.DataFrame({"item": [2, 1], "tags": [["x"], ["y", "z"]]})
    found = from_frame(frame.drop("genres"), genres="tags", items=items)
    assert catalogue(found) == {1: ("", 0, {"y", "z"}), 2: ("", 0, {"x"})}


def test_a_column_that_varies_within_an_item_does_not_describe_it(write: Write) -> None:
    reviews = "user,item,rating,title\n1,10,5,Great!\n1,20,3,so-so\n2,10,1,bad\n"
    assert load(write(reviews)).catalogue is None
    with pytest.raises(UserError, match=r"item '10' has more than one title \(column 'title'\)"):
        load(write(reviews), options=FileOptions(title="title"))


def test_items_of_other_ids_are_refused(write: Write) -> None:
    with pytest.raises(UserError, match="none of the rated items: x there, 10, 20 in the ratings"):
        load(write(RATINGS), options=FileOptions(items=write("item,title\nx,Alien\n", "items.csv")))
    with pytest.raises(UserError, match="no column tells titles, genres or years"):
        load(write(RATINGS), options=FileOptions(items=write("item,price\n10,3\n", "items.csv")))


def test_genres_of_ones_own_are_used_like_movielens(write: Write) -> None:
    """A model that looks at content predicts otherwise with genres than without."""
    plain = load("synthetic:clients=40,items=20,ratings_per_client=8").to_frame()
    items = pl.DataFrame({"item": range(20), "title": [f"t{i}" for i in range(20)], "genres": ["a", "b"] * 10})
    rmse = []
    for table in (None, items):
        training, test = split(from_frame(plain, items=table), 0)
        run = train(training, test, "fedmf")
        rmse.append(run.rmse)
    assert rmse[0] != rmse[1]
    assert run.recommender.top_items(0, 1)[0].title.startswith("t")


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\nuser;item;rating\n1;10;5,0\n1;20;3,5\n2;10;1,0\n",
        'sep=;\r\nuser;item;rating\r\n1;10;"5,0"\r\n1;20;"3,5"\r\n2;10;1\r\n',
        '"sep=;"\nuser;item;rating\n1;10;5\n1;20;3,5\n2;10;1\n',
        "user\titem\trating\n1\t10\t5\n1\t20\t3,5\n2\t10\t1\n",
    ],
)
def test_excel_exports_with_semicolons_and_decimal_commas(write: Write, text: str) -> None:
    assert load(write(text)).values.tolist() == [5.0, 3.5, 1.0]


def test_lines_are_counted_from_the_line_that_names_the_separator(write: Write) -> None:
    with pytest.raises(UserError, match=r"line 4: rating 'x' is not a number \(column 'stars'\)"):
        load(write("sep=;\nuser;item;stars\n1;10;5\n2;20;x\n"))


@pytest.mark.parametrize("words", ["true false", "TRUE FALSE", "yes no", "t f", "Y N"])
def test_booleans_are_likes(write: Write, words: str) -> None:
    yes, no = words.split()
    ratings = load(write(f"user,item,liked\n1,10,{yes}\n1,20,{no}\n2,10,{yes}\n"))
    assert ratings.values.tolist() == [1.0, 0.0, 1.0]
    assert str(ratings.scale) == "0:1:1"
    assert str(load(write(f"user,item,liked\n1,10,{yes}\n2,20,{yes}\n")).scale) == "0:1:1"
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "like": [True, False]})
    assert from_frame(frame).values.tolist() == [1.0, 0.0]


def workbook(rows: list[tuple[str | float, ...]]) -> bytes:
    """The least that is an .xlsx: one sheet, with texts inline."""

    def cell(value: str | float) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    of_documents = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{of_documents}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{of_documents}"><sheets>'
        '<sheet name="ratings" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" '
        f'Type="{of_documents}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return file.getvalue()


def test_a_workbook_is_read_like_text(write: Write) -> None:
    pytest.importorskip("fastexcel")
    rows: list[tuple[str | float, ...]] = [("user", "item", "rating"), (1, "a", 4.5), (1, "b", 3), (2, "a", 0.5)]
    ratings = load(write(workbook(rows), "ratings.xlsx"))
    assert ratings.values.tolist() == [4.5, 3.0, 0.5]
    assert ratings.client_ids.tolist() == [1, 2]
    with pytest.raises(UserError, match=r"row 2: rating 'x' is not a number \(column 'rating'\)"):
        load(write(workbook([*rows[:2], (2, "b", "x")]), "ratings.xlsx"))


def test_times_of_files(write: Write) -> None:
    def times(text: str, **options: str) -> list[int] | None:
        found = load(write(text), options=FileOptions(**options)).timestamps  # type: ignore[arg-type]
        return None if found is None else found.tolist()

    assert times("1::10::5::99\n1::20::3::98\n2::10::1::97\n") == [99, 98, 97]
    assert times("user,item,rating,date\n1,10,5,1970-01-02\n1,20,3,1970-01-01\n2,10,1,1970-01-01\n") == [86400, 0, 0]
    assert times("user,item,rating,hour\n1,10,5,3\n1,20,3,2\n2,10,1,1\n") is None
    assert times("user,item,rating,hour\n1,10,5,3\n1,20,3,2\n2,10,1,1\n", timestamp="hour") == [3, 2, 1]
    assert times("1,10,5,good\n1,20,3,\n2,10,1,x\n") is None
    with pytest.warns(DataWarning, match="not every 'date' is a time"):
        assert times("user,item,rating,date\n1,10,5,soon\n1,20,3,\n2,10,1,x\n") is None
    for first, second in (
        ("2024-05-31 10:00", "2024-05-30 23:59"),
        ("2024-05-31T10:00:00+02:00", "2024-05-31T10:00:00+03:00"),
        ("2024-05-31T10:00:00Z", "2024-05-31T09:59:59.9Z"),
        ("2024-05-31T10:00:00Z", "2024-05-31T10:00:00+02:00"),
        ("2024-05-31T10:00:00.5+01:00", "2024-05-31"),
        ("Fri May 31 01:00:00 -0800 2024", "Fri May 31 01:00:00 +0000 2024"),
        ("31.05.2024", "1.05.2024"),
        ("31.05.2024 10:00", "1.05.2024 9:00"),
        ("2024-05-31 10:00:00+02:00", "2024-05-31 10:00:00+03:00"),
        ("05/31/2024", "05/30/2024"),
        ("31/05/2024", "5/05/2024"),
        ("1717142400123", "1717142399999"),
        ("1717142400123456789", "1717142399000000000"),
    ):
        later, earlier = times(f'user;item;rating;date\n1;10;5;"{first}"\n2;20;3;"{second}"\n') or []
        assert 0 < later - earlier < 31 * 86400
        assert 1_717_000_000 - 31 * 86400 < earlier < later < 1_718_000_000
    with pytest.raises(UserError, match=r"line 3: 'x' is no time \(column 'hour'\)"):
        times("user,item,rating,hour\n1,10,5,3\n1,20,3,x\n2,10,1,1\n", timestamp="hour")
