"""The server's file of the items: what it tells of ratings, and what is refused when it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server import Deployment
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import FEWEST, ITEMS
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.errors import UserError
from fedrecplus.files import write_tensors
from fedrecplus.rounds import start_server
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.in_process import MODEL, InProcessLink, begin, prepared, serve, small_config
from tests.small_data import small_ratings

RATINGS = small_ratings()


def test_ratings_of_items_with_few_change_nothing_but_counts() -> None:
    ratings = small_ratings(clients=12)
    counts = ratings.item_counts()
    assert set(range(FEWEST)) < set(counts.tolist()), "or else the test tests nothing"
    rare = counts[ratings.items] < FEWEST
    others = replace(ratings, codes=np.where(rare, (ratings.codes + 1) % 5, ratings.codes).astype(np.uint8))
    catalogue = ItemCatalogue.published(ratings)
    assert ItemCatalogue.of(ratings).digest != ItemCatalogue.of(others).digest
    assert catalogue.digest == ItemCatalogue.published(others).digest
    np.testing.assert_array_equal(catalogue.public.popularity, counts)
    np.testing.assert_allclose(catalogue.public.average[counts < FEWEST], catalogue.public.mean)
    kept = ratings.where(~rare)
    assert catalogue.public.mean == kept.standard_values.mean()
    np.testing.assert_array_equal(catalogue.public.average, kept.item_means())


def test_the_command_writes_averages_or_none(tmp_path: Path) -> None:
    data = "synthetic:clients=60,items=40,ratings_per_client=10"
    path = tmp_path / ITEMS
    assert exit_code_of(["deploy", "items", data, "--out", str(path)]) == 0
    assert path.stat().st_size < 20_000, "it holds no rating"
    shown = ItemCatalogue.read(path)
    assert len(shown.public.average) == len(shown.ids)
    assert exit_code_of(["deploy", "items", data, "--out", str(path), "--without-averages"]) == 0
    bare = ItemCatalogue.read(path)
    assert len(bare.public.average) == 0
    assert bare.public.mean == shown.public.mean


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize("rule", ["drawn", "plausible"])
def test_rounds_and_predictions_do_without_averages(engine: str, rule: str, tmp_path: Path) -> None:
    config = small_config(engine=engine, virtual_ratings__rule=rule)
    homes = prepared(tmp_path, RATINGS, config)
    bare = ItemCatalogue.published(RATINGS, averages=False)
    begin(tmp_path / "run", config, Deployment(3, model=MODEL), bare, {"dataset": "small"}, overwrite=True)
    serve(InProcessLink(homes), tmp_path / "run")
    assert RunFolder(tmp_path / "run").finished
    assert exit_code_of(["device", "recommend", "--person", "4", "--home", str(homes[1].path)]) == 0


def test_a_device_reports_the_error_of_the_model_that_the_server_writes(tmp_path: Path) -> None:
    config = small_config(engine="reference", precision="float64")
    home = prepared(tmp_path, RATINGS, config, nodes=1)[0]
    catalogue = ItemCatalogue.read(tmp_path / "run" / ITEMS)
    state = start_server(config, catalogue.public)
    reply = answer(encode_request(MODEL, state, config, catalogue, attach=True), home.store, share_error=True)
    model, squared = catalogue.model(config, state.V, state.dense), 0.0
    for client in range(RATINGS.clients):
        items, ratings = RATINGS.of(client)
        squared += float(((model.X[items] @ model.fold_in(items, ratings) - ratings) ** 2).sum())
    assert reply.facts["squared_error"] == pytest.approx(squared, rel=1e-9)


@pytest.mark.parametrize(
    ("field", "spoil", "said"),
    [
        ("average", lambda table: table[1:], "39 rows for 40 items"),
        ("years", lambda table: table[1:], "39 rows for 40 items"),
        ("content", lambda table: table[1:], "39 rows for 40 items"),
        ("popularity", lambda table: table[:0], "0 rows for 40 items"),
        ("popularity", lambda table: table - 10_000, "counts below zero"),
        ("average", lambda table: np.append(table[1:], np.nan), "not finite"),
        ("average", lambda table: table[:, None], "2 dimensions"),
    ],
)
def test_a_catalogue_that_could_not_be_used_to_the_end_is_refused_when_it_is_read(
    field: str, spoil: Callable[[Any], Any], said: str, tmp_path: Path
) -> None:
    arrays = ItemCatalogue.published(RATINGS).arrays()
    path = tmp_path / ITEMS
    write_tensors(path, {**arrays, field: np.ascontiguousarray(spoil(arrays[field]))}, {}, private=False)
    with pytest.raises(UserError) as caught:
        ItemCatalogue.read(path)
    assert all(word in str(caught.value) for word in (str(path), f"`{field}`", said))


def asked(home: NodeHome, model: str, catalogue: ItemCatalogue) -> str:
    """What a device says to a model's first round over a catalogue: a refusal's word, or nothing."""
    config = small_config()
    state = start_server(config, catalogue.public)
    reply = answer(encode_request(model, state, config, catalogue, attach=True), home.store)
    return str(reply.facts.get("refusal", ""))


def test_a_device_lets_catalogues_go_that_nothing_refers_to(tmp_path: Path) -> None:
    home = prepared(tmp_path, RATINGS, small_config(), nodes=1)[0]
    exact = ItemCatalogue.published(RATINGS, participants=True)
    public = [
        replace(whole, public=replace(whole.public, mean=3.0 + 0.01 * number))
        for number, whole in enumerate([ItemCatalogue.published(RATINGS)] * 9)
    ]
    for number, catalogue in enumerate([public[0], exact, *public[1:]]):
        assert asked(home, f"{number:016x}", catalogue) == ""
    with Store.open(home.store) as store:
        kept = {digest for (digest,) in store.connection.execute("SELECT digest FROM catalogues")}
        assert len(store.models()) == 10, "their settings stay"
    expected = {public[0].digest, exact.digest, *(one.digest for one in public[-3:])}
    assert kept == expected, "of shown rows, of the participants, of the newest models"
    assert asked(home, f"{4:016x}", public[3]) == "", "one that went comes again"
    assert asked(home, "ff", ItemCatalogue.published(RATINGS.where(RATINGS.items > 0), participants=True)) == "policy"
