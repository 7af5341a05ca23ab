"""A published model with exact figures gives single people's ratings away; with a floor it gives none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.audit.published import file_sentence, opened, read_in_file
from fedrecplus.config import assign, check, dumps, preset
from fedrecplus.data import Ratings
from fedrecplus.engines import prepare
from fedrecplus.training.model_files import SharedModel
from tests.audit.conftest import command_output, small_town

FLOOR = 10


def with_rare_items() -> Ratings:
    """The small town in which every fifth person has rated something that nobody else has."""
    town = small_town()
    counts = np.full(town.clients, 20) + (np.arange(town.clients) % 5 == 0)
    items, codes, new = [], [], town.item_count
    for client in range(town.clients):
        own, values = town.of(client)
        items += own.tolist()
        codes += (values - 1).astype(int).tolist()
        if client % 5 == 0:
            items.append(new)
            codes.append(client // 5 % 5)
            new += 1
    return replace(
        town,
        indptr=np.concatenate([[0], np.cumsum(counts)]),
        items=np.array(items, dtype=np.uint16),
        codes=np.array(codes, dtype=np.uint8),
        item_ids=np.arange(new),
        catalogue=None,
    )


def published(folder: Path, ratings: Ratings, floor: bool, *settings: str) -> Path:
    """A model's file, with exact figures or with those of many raters alone, rounded."""
    config = check(assign(preset("fedrec+"), ["model.factors=4", *settings]))
    problem = prepare(ratings, config)
    public = problem.public
    if floor:
        rare = public.popularity < FLOOR
        coarse = np.rint(2.0 ** np.rint(np.log2(np.maximum(public.popularity, 1)))).astype(np.int64)
        public = replace(
            public,
            popularity=np.where(rare, 0, coarse),
            average=np.where(rare, round(public.mean, 2), np.round(public.average, 1)),
        )
    V = np.zeros((ratings.item_count, 4), dtype=np.float32)
    model = SharedModel(config, ratings.scale, V, public, ratings.item_ids, (), ())
    model.write(folder)
    return folder


def test_exact_figures_give_every_rating_of_an_item_that_one_person_rated(tmp_path: Path) -> None:
    ratings = with_rare_items()
    found = read_in_file(published(tmp_path, ratings, floor=False), ratings)
    assert found["once_rated"] >= 12
    assert found["read"] == found["once_rated"] == found["named"]
    assert f"{found['read']} of {found['once_rated']} ratings" in file_sentence(found)


def test_a_floor_and_rounding_give_none(tmp_path: Path) -> None:
    ratings = with_rare_items()
    found = read_in_file(published(tmp_path, ratings, floor=True), ratings)
    assert (found["read"], found["named"], found["seed"]) == (0, 0, None)


def test_a_seed_beside_a_budget_is_named_and_without_a_budget_it_is_not(tmp_path: Path) -> None:
    ratings = with_rare_items()
    assert opened(SharedModel.read(published(tmp_path, ratings, True, "seed=7"))).seed is None
    budget = ("seed=7", "seeded_noise=true", "privacy.rule=local", "privacy.epsilon=5")
    found = opened(SharedModel.read(published(tmp_path, ratings, True, *budget)))
    assert found.seed == 7


def test_the_command_opens_a_published_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, file = with_rare_items(), tmp_path / "mine.toml"
    file.write_text(dumps(assign(preset("fedmf"), ["model.factors=4", "server.rounds=3"])))
    watched = ["--algorithm", str(file), "--rounds", "2", "--users", "3", "--attacks", "popularity"]
    model = str(published(tmp_path, ratings, floor=False))
    said = command_output(monkeypatch, *watched, "--published", model, ratings=ratings)
    once = int((ratings.item_counts() == 1).sum())
    assert f"{once} of {once} ratings of items that one person rated are read" in said
