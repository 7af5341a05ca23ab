"""A model goes on with items that were added: rows from features, trained from then on, equal to a simulation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, change
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.operate.runs import deal_out
from fedrecplus.deploy.server import Deployment
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.engines import engine_of, prepare, rounds, start_private
from fedrecplus.errors import UserError
from fedrecplus.rounds import extend_server
from fedrecplus.training.model_files import read_tensors
from tests.deploy.in_process import InProcessLink, begin, go_on, serve, small_config
from tests.small_data import small_ratings

WHOLE = small_ratings(items=30)
FIRST, ADDED = 26, 4


def first_items(ratings: Ratings, count: int = FIRST) -> Ratings:
    """The ratings of the items that there were at first."""
    kept, catalogue = ratings.where(ratings.items < count), ratings.catalogue
    shorter = None if catalogue is None else replace(
        catalogue, titles=catalogue.titles[:count], years=catalogue.years[:count], genres=catalogue.genres[:count]
    )  # fmt: skip
    return replace(kept, item_ids=kept.item_ids[:count], catalogue=shorter)


def simulated(
    begun: ItemCatalogue, grown: ItemCatalogue, config: Config, after: int, early: np.ndarray | None = None
) -> np.ndarray:
    """V where the items come between two rounds of a simulation, before which some ratings may be alone."""
    at_first = first_items(WHOLE if early is None else WHOLE.where(early))
    earlier = prepare(at_first, change(config, "server.rounds", after), begun.public)
    *_, (state, _) = rounds(engine_of(config), earlier)
    later = prepare(WHOLE, config, grown.public)
    server = extend_server(state.server, begun.public, grown.public, config)
    private = replace(start_private(later), U=state.private.U)
    *_, (state, _) = rounds(engine_of(config), later, replace(state, server=server, private=private))
    return state.server.V


def with_every_change(link: InProcessLink) -> InProcessLink:
    """A new rating enters the next upload, as it does in a simulation."""
    for home in link.homes:
        with Store.open(home.store) as store, store.changing():
            store.put("facts", [("batch", "1")])
    return link


@pytest.mark.parametrize(("model", "growth"), [("mf", 0.0), ("reconstruction", 0.2)], ids=str)
def test_items_between_rounds_equal_a_simulation_bit_for_bit(tmp_path: Path, model: str, growth: float) -> None:
    """With growth the task stays; without it, devices are asked for another one."""
    config = small_config("fedmf", rounds=2, engine="reference", precision="float64", model__rule=model)
    begun = ItemCatalogue.of(first_items(WHOLE))
    grown = begun.grown(ItemCatalogue.of(WHOLE))
    link = with_every_change(InProcessLink(deal_out(WHOLE, tmp_path / "nodes", 3, config.seed)))
    terms = Deployment(3, rounds=4, growth=growth)
    before = begin(tmp_path / "first", config, terms, begun, {"dataset": "small"})
    serve(link, tmp_path / "first")
    after = go_on(tmp_path / "first", tmp_path / "second", config, terms, grown, overwrite=False)
    assert (before.deployment.task == after.deployment.task) == (growth > 0.0)
    serve(link, tmp_path / "second")
    V = read_tensors(tmp_path / "second" / "model.safetensors")[0]["V"]
    expected = simulated(begun, grown, change(config, "server.rounds", 4), after=2)
    np.testing.assert_array_equal(V, expected)
    entered = extend_server_rows(tmp_path / "first", begun, grown, config)
    assert np.abs(V[FIRST:] - entered).max() > 0.01, "the new rows were trained"


def extend_server_rows(run: Path, begun: ItemCatalogue, grown: ItemCatalogue, config: Config) -> np.ndarray:
    """The new rows as they entered."""
    return config.model.new_items(read_tensors(run / "model.safetensors")[0]["V"], grown.public, config.seed)


def test_what_was_known_stays_and_new_figures_are_in_its_units() -> None:
    begun, whole = ItemCatalogue.of(first_items(WHOLE)), ItemCatalogue.of(WHOLE)
    grown = begun.grown(whole)
    assert grown.ids == whole.ids
    assert grown.continues(begun)
    assert not grown.continues(whole)
    assert grown.grown(whole).digest == grown.digest, "nothing is new"
    again = whole.first(FIRST).grown(whole)
    within = whole.first(FIRST).bounds["content"]
    np.testing.assert_allclose(again.public.content, within(whole.public.content))
    assert np.isclose(again.public.content, whole.public.content).mean() > 0.95, "few are beyond what there was"
    assert ItemCatalogue.of_arrays(grown.arrays()).digest == grown.digest


def test_other_scales_and_features_are_refused() -> None:
    begun = ItemCatalogue.of(first_items(WHOLE))
    wide = replace(begun.public, content=np.ones((FIRST, 99)))
    with pytest.raises(UserError, match="other features"):
        replace(begun, public=wide).grown(ItemCatalogue.of(WHOLE))
    public = replace(begun, public=replace(begun.public, source="public"))
    with pytest.raises(UserError, match="exact figures of participants"):
        public.grown(ItemCatalogue.of(WHOLE))


def test_the_command_adds_to_a_catalogue_and_a_run_takes_no_other_change(tmp_path: Path) -> None:
    data = "synthetic:clients=60,items={},ratings_per_client=10"
    first, more = tmp_path / "items.safetensors", tmp_path / "more.safetensors"
    assert exit_code_of(["deploy", "items", data.format(30), "--out", str(first)]) == 0
    assert exit_code_of(["deploy", "items", data.format(36), "--add-to", str(first), "--out", str(more)]) == 0
    assert ItemCatalogue.read(more).continues(ItemCatalogue.read(first))
    assert len(ItemCatalogue.read(more).ids) == 36
