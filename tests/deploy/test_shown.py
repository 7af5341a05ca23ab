"""One pseudo set per person: a second model, or a catalogue with other counts, draws no new one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.deploy.device import Store, answer, load_clients
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.parts.pseudo_items.grouped import groups
from fedrecplus.rounds import start_server
from tests.deploy.in_process import allow_clear, small_config
from tests.small_data import small_ratings

RATINGS = small_ratings(items=200)
FIRST = ItemCatalogue.published(RATINGS)
MINE = {str(item): 1.0 + item % 5 for item in range(0, 48, 2)}


def other_counts() -> ItemCatalogue:
    """The same items; somebody joined, and some counts differ a little."""
    popularity = FIRST.public.popularity + np.random.default_rng(1).integers(0, 3, 200)
    return replace(FIRST, public=replace(FIRST.public, popularity=popularity))


def other_items() -> ItemCatalogue:
    """Half of the items, under other numbers, and ten new ones."""
    kept = np.arange(199, 0, -2)
    public = FIRST.public
    tables = {name: np.concatenate([getattr(public, name)[kept], getattr(public, name)[:10]])
              for name in ("content", "popularity", "average", "years") if len(getattr(public, name))}  # fmt: skip
    ids = (*(FIRST.ids[item] for item in kept), *(f"new {number}" for number in range(10)))
    return replace(FIRST, ids=ids, titles=(), public=replace(public, **tables))


def rows(path: Path, catalogue: ItemCatalogue, model: str, config: Config, number: int = 0) -> set[str]:
    """Ids of the items in an upload."""
    state = replace(start_server(config, catalogue.public), round=number)
    reply = answer(encode_request(model, state, config, catalogue, attach=True), path)
    assert "refusal" not in reply.facts, reply.facts
    return {catalogue.ids[item] for item in reply.arrays["items"].tolist()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    Store.create(path, RATINGS.scale, seed=3, batch=5)
    allow_clear(path)
    with Store.open(path) as store:
        store.rate(MINE)
    return path


@pytest.mark.parametrize("rule", ["grouped", "matched", "similar", "popular"])
def test_a_second_model_over_other_counts_shows_the_same_rows_and_values(rule: str, path: Path) -> None:
    config = small_config(pseudo_items__rule=rule)
    fresh = path.parent / "fresh" / "store.db"
    Store.create(fresh, RATINGS.scale, seed=3, batch=5)
    allow_clear(fresh)
    with Store.open(fresh) as store:
        store.rate(MINE)
    first = rows(path, FIRST, "aa", config)
    assert rows(path, other_counts(), "bb", config) == first
    if rule in ("grouped", "matched"):
        assert rows(fresh, other_counts(), "bb", config) != first, "or else the test tests nothing"
    with Store.open(path) as store:
        one, other = (load_clients(store, model)[0] for model in ("aa", "bb"))
    assert one.kept is not None
    assert other.kept is not None
    np.testing.assert_array_equal(one.kept.ratings, other.kept.ratings)


def test_a_model_over_other_items_shows_the_same_rows_as_far_as_it_knows_them(path: Path) -> None:
    config, catalogue = small_config(), other_items()
    with Store.open(path) as store:
        store.rate({str(item): 2.0 for item in range(1, 12, 2)})
    first = rows(path, FIRST, "aa", config)
    assert rows(path, catalogue, "bb", config) == first & set(catalogue.ids)
    assert rows(path, FIRST, "aa", config, 1) == first


def test_ratings_that_wait_for_their_batch_don_t_show_in_a_new_model(path: Path) -> None:
    config = small_config()
    first = rows(path, FIRST, "aa", config)
    late = [item for item in range(60, 200) if str(item) not in first][:6]
    with Store.open(path) as store:
        store.rate({str(item): 5.0 for item in late[:4]})
    assert rows(path, other_counts(), "bb", config) == first, "four are no batch"
    with Store.open(path) as store:
        store.rate({str(item): 5.0 for item in late[4:]})
    second = rows(path, other_counts(), "bb", config, 1)
    assert first | {str(item) for item in late} <= second
    assert rows(path, FIRST, "aa", config, 1) == second, "the batch's company is the same in every model"
    group = groups(FIRST.public, config.pseudo_items.settings)
    assert {str(item) for item in np.flatnonzero(np.isin(group, group[late]))} <= second, "groups of the first counts"


def test_a_catalogue_of_other_things_begins_a_set_of_its_own(path: Path) -> None:
    config = small_config()
    first = rows(path, FIRST, "aa", config)
    books = replace(FIRST, ids=tuple(f"book {number}" for number in range(200)), titles=())
    with Store.open(path) as store:
        store.rate({f"book {number}": 4.0 for number in range(12)})
    assert {f"book {number}" for number in range(12)} < rows(path, books, "cc", config)
    assert rows(path, FIRST, "aa", config, 1) == first
