"""What is published tells nobody's ratings: no seed, no exact counts, no list that one person's rating is in."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import Ratings
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from fedrecplus.protocol import PublicItems
from fedrecplus.training import MODEL, Registry, RunFolder, SharedModel, finished_model
from fedrecplus.training.publishing import FEWEST_RATERS, published_model
from fedrecplus.training.registry import PUBLISHED
from fedrecplus.web.page import build_site
from fedrecplus.web.service import ModelSource
from tests.small_data import small_ratings

SEED = 7_654_321
SETTINGS = ("server.rounds=3", "model.factors=4", f"seed={SEED}")


def rated_once(ratings: Ratings, items: int = 6) -> Ratings:
    """The last items keep one rating each."""
    rare = ratings.items >= ratings.item_count - items
    first = np.zeros(len(ratings), dtype=bool)
    first[np.unique(ratings.items, return_index=True)[1]] = True
    return ratings.where(~rare | first)


RATINGS = rated_once(small_ratings(clients=90, items=60))


def trained(folder: Path, ratings: Ratings = RATINGS, algorithm: str = "fedrec+", *changes: str) -> Path:
    config = fr.assign(fr.preset(algorithm), [*SETTINGS, *changes])
    fr.train(*fr.split(ratings, fold=0), config, out=folder)
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("run"))


def published_files(run: Path, folder: Path) -> dict[str, bytes]:
    """Everything that leaves a run folder: a registry's files, and a site's."""
    registry, site = Registry(folder / "registry").publish(run), build_site(run, folder / "site")
    return {file.name: file.read_bytes() for place in (registry.folder, site.folder) for file in place.iterdir()}


@pytest.mark.parametrize("name", [MODEL, PUBLISHED, "model.json", "leaves.json"])
def test_no_seed_is_published(run: Path, tmp_path: Path, name: str) -> None:
    assert str(SEED).encode() in (run / MODEL).read_bytes()
    assert str(SEED).encode() not in published_files(run, tmp_path)[name]


def test_no_folder_of_the_operator_s_is_published(tmp_path: Path) -> None:
    file = tmp_path / "folder of customers" / "others.csv"
    file.parent.mkdir()
    RATINGS.to_frame().write_csv(file)
    run = trained(tmp_path / "run", RATINGS, "fedrec+", "statistics.source=public", f"statistics.file={file}")
    assert b"folder of customers" in (run / MODEL).read_bytes()
    for name, content in published_files(run, tmp_path).items():
        assert b"folder of customers" not in content, name


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_nobody_else_on_the_machine_looks_into_a_run_folder(tmp_path: Path) -> None:
    """Its model has exact counts and averages, and the seed."""
    fr.train(RATINGS, None, fr.assign(fr.preset("fedmf"), ["server.rounds=1"]), out=tmp_path / "runs" / "own")
    fr.FedRec("fedmf", server__rounds=1).fit(RATINGS.to_frame()).save(tmp_path / "saved")
    for folder in (tmp_path / "runs" / "own", tmp_path / "saved"):
        assert folder.stat().st_mode & 0o077 == 0


def test_errors_have_three_digits(run: Path, tmp_path: Path) -> None:
    exact, files = RunFolder(run).result(), published_files(run, tmp_path)
    figures, made = json.loads(files[PUBLISHED])["figures"], json.loads(files["model.json"])["made"]
    for name in ("rmse", "mae"):
        assert figures[name] == made[name] == round(exact[name], 3)
    assert f"{exact['rmse']}".encode() not in b"".join(files.values())
    assert figures["ndcg@10"] == round(exact["ranking"]["ndcg@10"], 3)


def read_back(public: PublicItems, mean: float) -> np.ndarray:
    """Each item's only rating, if it had one: its damped average says so, as in ``Ratings.item_means``."""
    return np.rint(public.averages() * 11.0 - 10.0 * mean)


def test_ratings_of_items_that_one_person_rated_are_not_read(tmp_path: Path) -> None:
    run = tmp_path / "run"
    fr.train(RATINGS, None, fr.assign(fr.preset("fedmf"), SETTINGS[:2]), out=run)
    once = RATINGS.item_counts() == 1
    truth = np.bincount(RATINGS.items, weights=RATINGS.standard_values, minlength=RATINGS.item_count)
    exact, shown = SharedModel.read(run), finished_model(run, ())[0]
    assert once.sum() == 6
    np.testing.assert_array_equal(read_back(exact.public, exact.public.mean)[once], truth[once])
    assert set(shown.public.popularity[once]) == {0}
    assert len(set(read_back(shown.public, shown.public.mean)[once])) == 1, "one guess for all of them"


def test_another_rating_of_a_rare_item_changes_nothing_that_is_shown_of_it() -> None:
    item = RATINGS.item_count - 1
    codes = np.where(RATINGS.items == item, (RATINGS.codes + 2) % RATINGS.scale.levels, RATINGS.codes)
    shown = [
        published_model(model_of(ratings), {"item_list": "public"})
        for ratings in (RATINGS, replace(RATINGS, codes=codes))
    ]
    np.testing.assert_array_equal(shown[0].public.popularity, shown[1].public.popularity)
    np.testing.assert_allclose(shown[0].public.average[item], shown[1].public.average[item], atol=0.011)
    np.testing.assert_array_equal(shown[0].V[item], shown[1].V[item])


def model_of(ratings: Ratings) -> SharedModel:
    """A model whose V says of every item what its raters say, as no training would, with exact figures."""
    public = public_items(ratings)
    V = np.outer(public.average, [1.0, -2.0])
    return SharedModel(fr.preset("fedrec"), ratings.scale, V, public, ratings.item_ids, ())


def test_rare_items_have_no_row_of_their_own(run: Path) -> None:
    exact, shown = SharedModel.read(run), finished_model(run, ())[0]
    rare = exact.public.popularity < FEWEST_RATERS
    changed = np.where(rare[:, None], 5.0, exact.V).astype(exact.V.dtype)
    again = published_model(replace(exact, V=changed), {"item_list": "public"})
    assert 0 < rare.sum() < len(rare)
    np.testing.assert_array_equal(again.V, shown.V)


def test_rare_items_have_no_row_where_their_counts_alone_have_noise(run: Path) -> None:
    """`statistics.epsilon` without a budget for rounds: the row of an item that one person rated tells the rating."""
    exact = SharedModel.read(run)
    noised = replace(exact, public=replace(exact.public, source="secure-sum", epsilon=2.0))
    rare = exact.public.popularity < FEWEST_RATERS
    changed = replace(noised, V=np.where(rare[:, None], 5.0, exact.V).astype(exact.V.dtype))
    rounds_too = {"item_list": "public", "privacy": {"epsilon": 2.0}}
    shown, other = (published_model(one, {"item_list": "public", "privacy": None}).V for one in (noised, changed))
    np.testing.assert_array_equal(shown, other)
    assert (published_model(changed, rounds_too).V[rare] == 5.0).all(), "noise in every row needs no floor"


def test_other_counts_are_coarse_and_predictions_stay(run: Path) -> None:
    exact, shown = SharedModel.read(run), finished_model(run, ())[0]
    often = exact.public.popularity >= FEWEST_RATERS
    ratio = shown.public.popularity[often] / exact.public.popularity[often]
    assert len(set(shown.public.popularity[often])) < len(set(exact.public.popularity[often]))
    assert (ratio > 0.8).all()
    assert (ratio < 1.25).all()
    assert np.abs(shown.public.average - np.round(shown.public.average, 2)).max() < 1e-9
    items = np.flatnonzero(often)[:8]
    ratings = np.array([5.0, 1.0, 4.0, 2.0, 3.0, 5.0, 4.0, 1.0])[: len(items)]
    before, after = (model.X[often] @ model.fold_in(items, ratings) for model in (exact, shown))
    assert np.sqrt(np.mean((before - after) ** 2)) < 0.15


def test_a_list_that_comes_from_the_ratings_has_only_items_that_many_rated(tmp_path: Path) -> None:
    own = trained(tmp_path / "own", replace(RATINGS, listed=False))
    exact, shown = SharedModel.read(own), finished_model(own, ())[0]
    expected = exact.item_ids[exact.public.popularity >= FEWEST_RATERS]
    assert shown.item_ids.tolist() == expected.tolist()
    assert len(shown.V) == len(shown.titles) == len(shown.public.content) == len(expected) < len(exact.item_ids)
    few = trained(tmp_path / "few", replace(small_ratings(clients=8), listed=False))
    with pytest.raises(UserError, match="no item has 10 raters"):
        Registry(tmp_path / "registry").publish(few)


def ratings_file(folder: Path, *more: str) -> str:
    """A file of ratings, with lines more, and a list of the films that there are."""
    folder.mkdir(exist_ok=True)
    pairs = zip(RATINGS.client_of_rating, RATINGS.items, RATINGS.values, strict=True)
    lines = [f"{client},{item},{rating:g}" for client, item, rating in pairs if item != 3]
    (folder / "ratings.csv").write_text("\n".join(["user,item,rating", *lines, *more]) + "\n")
    (folder / "films.csv").write_text("item\n" + "".join(f"{item}\n" for item in range(RATINGS.item_count)))
    return str(folder / "ratings.csv")


def known_before(folder: Path) -> list[str]:
    """What was public before anybody rated."""
    return ["--catalogue", str(folder / "films.csv"), "--scale", "0.5:5:0.5"]


def test_who_rated_a_film_alone_changes_no_list_of_items_under_a_budget(tmp_path: Path) -> None:
    """Two worlds: in one of them somebody has rated a film that nobody else has."""
    lists = []
    for name, more in (("without", ()), ("with", ("5,3,4",))):
        file, out = ratings_file(tmp_path / name, *more), str(tmp_path / name / "run")
        train = ["train", "--dataset", file, "--algorithm", "fedmf", "--full", "--out", out, "--epsilon", "5"]
        assert exit_code_of(train) == 2, "a list that comes from the ratings is covered by no ε"
        catalogue = [*known_before(tmp_path / name), "--set", "server.rounds=2"]
        assert exit_code_of([*train, *catalogue]) == 0
        files = published_files(Path(out), tmp_path / name)
        lists.append((json.loads(files["items.json"])["ids"], json.loads(files[PUBLISHED])["figures"]["items"]))
    assert lists[0] == lists[1]
    assert "3" in lists[0][0]


def test_a_half_star_of_one_person_changes_no_scale_under_a_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scales = []
    for name, more in (("without", ()), ("with", ("5,3,3.5",))):
        file, out = ratings_file(tmp_path / name, *more), tmp_path / name / "run"
        train = ["train", "--dataset", file, "--algorithm", "fedmf", "--full", "--out", str(out), "--epsilon", "5"]
        catalogue, scale = known_before(tmp_path / name)[:2], known_before(tmp_path / name)[2:]
        assert exit_code_of([*train, *catalogue]) == 2
        assert "no ε covers a scale that comes from the ratings" in capsys.readouterr().err
        assert exit_code_of([*train, *catalogue, *scale, "--set", "server.rounds=2"]) == 0
        scales.append(str(SharedModel.read(out).scale))
    assert scales[0] == scales[1]


def test_one_rating_among_likes_changes_no_flag_under_a_budget(tmp_path: Path) -> None:
    """Where everybody gave the same rating, one person who gave another would be seen by that alone."""
    flags = []
    for name, rating in (("without", 5), ("with", 1)):
        file, out = Path(ratings_file(tmp_path / name)), tmp_path / name / "run"
        lines = [f"{person},{item},5" for person in range(1, 25) for item in (1, 2, 3)]
        file.write_text("\n".join(["user,item,rating", *lines, f"30,1,{rating}", "30,2,5"]) + "\n")
        train = ["train", "--dataset", str(file), "--algorithm", "fedmf", "--full", "--out", str(out)]
        train += known_before(tmp_path / name)
        assert exit_code_of([*train, "--epsilon", "5", "--set", "server.rounds=2"]) == 0
        flags.append((RunFolder(out).result()["likes_alone"], finished_model(out, ())[1]["figures"]["likes_alone"]))
    assert [run for run, _ in flags] == [True, False], "the run folder is its operator's"
    assert [told for _, told in flags] == [False, False]


@pytest.mark.parametrize("command", ["publish", "page"])
@pytest.mark.parametrize("budget", ["privacy.rule=central", "statistics.epsilon=2"])
def test_seeded_noise_is_refused(tmp_path: Path, command: str, budget: str, capsys: pytest.CaptureFixture[str]) -> None:
    config = fr.with_budget(fr.preset("fedmf"), 5.0, 1e-4, "central", RATINGS.clients)
    if budget.startswith("statistics"):
        config = fr.assign(fr.preset("fedmf"), ["statistics.source=secure-sum", budget])
    config = fr.assign(config, ["server.rounds=2", "model.factors=2", "seeded_noise=true"])
    fr.train(RATINGS, None, config, out=tmp_path / "run")
    places = {"publish": ["--registry", str(tmp_path / "registry")], "page": ["--out", str(tmp_path / "site")]}
    assert exit_code_of([command, str(tmp_path / "run"), *places.get(command, [])]) == 2
    told = capsys.readouterr().err
    assert "drawn from its seed" in told
    assert "without --seeded-noise" in told
    assert not list(tmp_path.glob("registry/*")) or not Registry(tmp_path / "registry").models()
    assert not (tmp_path / "site").exists()
    with pytest.raises(UserError, match="drawn from its seed"):
        ModelSource(tmp_path / "run")  # what `serve` begins with


def test_a_run_of_an_earlier_version_with_a_budget_is_seeded(run: Path) -> None:
    """Its settings don't say so; its result does."""
    with pytest.raises(UserError, match="drawn from its seed"):
        published_model(SharedModel.read(run), {"privacy": {"seeded_noise": True}})


def test_publish_says_what_it_gives_away(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["publish", str(run), "--registry", str(tmp_path / "registry")]) == 0
    told = capsys.readouterr().out
    assert "gives away: 60 items (a list that was public before)" in told
    assert "no noise, so no bound" in told
    assert exit_code_of(["page", str(run), "--out", str(tmp_path / "site")]) == 0
    assert "gives away" in capsys.readouterr().out
