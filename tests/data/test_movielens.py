"""GroupLens' layouts, and the real MovieLens-100K."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from local_grouplens import MOVIES_CSV, RATINGS_CSV, archive, small_set

from fedrecplus.data import Ratings, describe, load
from fedrecplus.data.movielens.fetch import cached_path
from fedrecplus.data.movielens.read import read_set, title_and_year
from fedrecplus.data.movielens.sets import KNOWN, RECBOLE
from fedrecplus.errors import UserError

FLAGS = "0|1|0|0|0|1" + "|0" * 13  # Action and Comedy
U_ITEM = f"5|Café Noir (1995)|01-Jan-1995||http://|{FLAGS}\n7|unknown|||||1{'|0' * 18}\n"
LAYOUTS = {
    "ml-100k": archive(u_data="1\t5\t3\t9\n2\t7\t5\t9\n", u_item=U_ITEM.encode("latin-1")),
    "ml-1m": archive(
        ratings_dat="1::5::3::9\n2::7::5::9\n", movies_dat="5::Café Noir (1995)::Action|Comedy\n".encode("latin-1")
    ),
    "ml-10m": archive(ratings_dat="1::5::3::9\n2::7::4.5::9\n", movies_dat="5::Café Noir (1995)::Action|Comedy\n"),
    **{
        name: archive(
            ratings_csv="userId,movieId,rating,timestamp\n1,5,3.0,9\n2,7,4.5,9\n",
            movies_csv="movieId,title,genres\n5,Café Noir (1995),Action|Comedy\n7,unknown,(no genres listed)\n",
        )
        for name in ("ml-latest-small", "ml-20m", "ml-25m", "ml-32m")
    },
}


def publish(name: str, clients: int, items: int, ratings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test, let the published set be so small."""
    monkeypatch.setitem(
        KNOWN, name, replace(KNOWN[name], clients=clients, items=items, ratings=ratings, ratings_md5="")
    )


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("unpacked", [False, True])
def test_every_layout_is_read_from_the_users_folder(
    name: str, unpacked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    publish(name, 2, 2, 2, monkeypatch)
    (tmp_path / f"{name}.zip").write_bytes(LAYOUTS[name])
    if unpacked:
        _unpack(tmp_path, name, {"ml-10m": "ml-10M100K"}.get(name, name))
    ratings = load(name)
    assert ratings.client_ids.tolist() == [1, 2]
    assert ratings.item_ids.tolist() == [5, 7]
    assert str(ratings.scale) == ("1:5:1" if name in ("ml-100k", "ml-1m") else "0.5:5:0.5")
    assert ratings.values[0] == 3.0
    catalogue = ratings.catalogue
    assert catalogue is not None
    assert catalogue.titles == ("Café Noir", "")
    assert catalogue.years.tolist() == [1995, 0]
    assert catalogue.genre_names == ("Action", "Comedy")
    assert catalogue.genres.tolist() == [[True, True], [False, False]]


def _unpack(folder: Path, name: str, to: str) -> None:
    packed = folder / f"{name}.zip"
    (folder / to).mkdir()
    with zipfile.ZipFile(packed) as zipped:
        for member in zipped.namelist():
            (folder / to / Path(member).name).write_bytes(zipped.read(member))
    packed.unlink()


def test_ratings_without_movies_have_no_catalogue_and_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    publish("ml-20m", 3, 3, 4, monkeypatch)
    (tmp_path / "ml-20m").mkdir()
    (tmp_path / "ml-20m" / "ratings.csv").write_text(RATINGS_CSV)
    assert load("ml-20m").catalogue is None
    (tmp_path / "ml-20m" / "movies.csv").write_text(MOVIES_CSV)
    catalogue = load("ml-20m").catalogue
    assert catalogue is not None
    assert catalogue.titles == ("Heat", "Élan, L'", "")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (small_set()[:100], "damaged zip"),
        (archive(movies_csv=MOVIES_CSV), "holds no ratings.csv"),
        (archive(ratings_csv=RATINGS_CSV + "4,10,9.0,1\n", movies_csv=MOVIES_CSV), "line 6: rating 9 is not on"),
        (archive(ratings_csv=RATINGS_CSV, movies_csv="movieId,title\n1,2\n"), "movies.csv is damaged"),
    ],
    ids=["cut", "no ratings", "off the scale", "movies"],  # an archive's bytes hold the time: no name for a test
)
def test_a_bad_archive_in_the_users_folder_is_refused(
    contents: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    publish("ml-25m", 3, 3, 4, monkeypatch)
    (tmp_path / "ml-25m.zip").write_bytes(contents)
    with pytest.raises(UserError, match=message):
        load("ml-25m")
    assert not cached_path("ml-25m").exists()


@pytest.mark.parametrize("name", [name for name, known in KNOWN.items() if not known.changes])
def test_what_is_not_the_whole_set_does_not_go_by_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    (tmp_path / f"{name}.zip").write_bytes(LAYOUTS[name])
    with pytest.raises(UserError, match=f"has 2 ratings by 2 users of 2 items; as published, {name} has ") as caught:
        load(name)
    assert f"{name}.zip" in caught.value.problem
    assert "--dataset PATH" in caught.value.remedy
    assert not cached_path(name).exists()
    with monkeypatch.context() as patch:  # and one that came into the cache all the same is not taken from there
        publish(name, 2, 2, 2, patch)
        load(name)
    assert cached_path(name).exists()
    with pytest.raises(UserError, match="as published"):
        load(name)


def test_an_md5_beside_the_users_archive_is_heeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    (tmp_path / "ml-25m.zip").write_bytes(small_set())
    (tmp_path / "ml-25m.zip.md5").write_text(f"{'0' * 32}  ml-25m.zip\n")
    with pytest.raises(UserError, match="has md5"):
        load("ml-25m")


@pytest.mark.parametrize(
    ("text", "title", "year"),
    [
        ("Seven (a.k.a. Se7en) (1995)", "Seven (a.k.a. Se7en)", 1995),
        ("Land Before Time III, The (1995) (V)", "Land Before Time III, The", 1995),
        ("Fawlty Towers (1975-1979)", "Fawlty Towers", 1975),
        ("The OA (2016– )", "The OA", 2016),
        ("2001 (1968) ", "2001", 1968),
        ("1984", "1984", 0),
    ],
)
def test_the_year_is_taken_off_the_title(text: str, title: str, year: int) -> None:
    assert title_and_year(text) == (title, year)


def test_movielens_100k_keeps_its_times(ml_100k: Ratings) -> None:
    assert ml_100k.timestamps is not None
    assert (ml_100k.timestamps.min(), ml_100k.timestamps.max()) == (874724710, 893286638)
    frame = ml_100k.to_frame()
    assert frame.filter((frame["user"] == 196) & (frame["item"] == 242)).row(0) == (196, 242, 3.0, 881250949)


def test_movielens_100k_is_whole(ml_100k: Ratings) -> None:
    facts = describe(ml_100k)
    assert (facts["clients"], facts["items"], facts["ratings"]) == (943, 1682, 100_000)
    assert facts["histogram"] == {"1": 6110, "2": 11370, "3": 27145, "4": 34174, "5": 21201}
    assert facts["activity"]["least"] == 20
    assert all(share > 0.99 for share in facts["metadata"].values())
    catalogue = ml_100k.catalogue
    assert catalogue is not None
    assert (catalogue.titles[0], catalogue.years[0]) == ("Toy Story", 1995)
    toy_story = [name for name, has in zip(catalogue.genre_names, catalogue.genres[0], strict=True) if has]
    assert toy_story == ["Animation", "Children's", "Comedy"]
    assert len(catalogue.genre_names) == 18
    client = int(np.flatnonzero(ml_100k.client_ids == 196)[0])
    items, values = ml_100k.of(client)
    assert values[items == 241].tolist() == [3.0]  # the first line of u.data: 196 242 3


def test_ml_100k_with_a_rating_changed_is_refused_wherever_it_comes_from(
    ml_100k: Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, items = ml_100k.client_ids[ml_100k.client_of_rating], ml_100k.item_ids[ml_100k.items]
    values = ml_100k.values
    values[0] = 6 - values[0]
    lines = zip(users.tolist(), items.tolist(), values.astype(int).tolist(), strict=True)
    u_data = "".join(f"{user}\t{item}\t{value}\t0\n" for user, item, value in lines)
    wheel = tmp_path / "recbole.whl"
    wheel.write_bytes(archive(**{"ml-100k.inter": f"a header\n{u_data}", "ml-100k.item": "a header\n"}))
    with pytest.raises(UserError, match=r"ml-100k\.inter has md5 .*, as published it has 6e47"):
        read_set(wheel, KNOWN["ml-100k"], RECBOLE)
    monkeypatch.setenv("FEDRECPLUS_DATA", str(tmp_path))
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text(u_data)
    with pytest.raises(UserError, match=r"u\.data has md5 .*, as published it has 6e47"):
        load("ml-100k")
