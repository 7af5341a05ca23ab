"""An attacker with ratings of the same items by other people: joined by id or title, and taught by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.audit import AuditExtent, audit_case, audit_cases
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.audit.second_data import joined
from fedrecplus.config import assign, preset
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError
from tests.audit.conftest import CLIENTS, ITEMS, small_town


def others(number: int = 60) -> Ratings:
    """More people of the small town."""
    both = small_town(clients=CLIENTS + number)
    first = both.indptr[CLIENTS]
    return replace(
        both,
        name="others",
        indptr=both.indptr[CLIENTS:] - first,
        items=both.items[first:],
        codes=both.codes[first:],
        client_ids=both.client_ids[CLIENTS:],
    )


def shuffled(ratings: Ratings, titles: bool) -> Ratings:
    """The same ratings under other item numbers."""
    to = np.random.default_rng(1).permutation(ITEMS)
    ids = np.empty_like(ratings.item_ids)
    ids[to] = ratings.item_ids
    catalogue = replace(ratings.catalogue, titles=tuple(f"The  film: {name}!" for name in ids)) if titles else None
    order = np.lexsort((to[ratings.items], ratings.client_of_rating))
    items = to[ratings.items].astype(ratings.items.dtype)[order]
    return replace(ratings, items=items, codes=ratings.codes[order], item_ids=ids, catalogue=catalogue)


@pytest.mark.parametrize("titles", [False, True])
def test_ratings_are_joined_by_title_or_id_and_not_by_number(titles: bool) -> None:
    town = small_town()
    if titles:
        town = replace(town, catalogue=replace(town.catalogue, titles=tuple(f"the film {i}" for i in town.item_ids)))
    second = others()
    found = joined(shuffled(second, titles), town)
    for client in (0, 7):
        for one, other in zip(found.of(client), second.of(client), strict=True):
            assert np.array_equal(one, other)
    assert found.catalogue is town.catalogue


def test_items_that_only_one_data_set_has_are_left_out() -> None:
    second = others()
    renamed = np.where(np.arange(ITEMS) < 60, second.item_ids, second.item_ids + 5000)
    found = joined(replace(second, item_ids=renamed), small_town())
    assert found.items.max() < 60
    assert len(found) == (second.items < 60).sum()


def test_another_data_set_of_other_items_is_refused() -> None:
    second = others()
    with pytest.raises(UserError, match="0 items in common"):
        joined(replace(second, item_ids=second.item_ids + 5000), small_town())
    mixed_up = replace(second, item_ids=np.random.default_rng(0).permutation(second.item_ids))
    with pytest.raises(UserError, match="different items by the same ids"):
        joined(mixed_up, small_town())


def test_an_attacker_with_another_data_set_is_taught_by_it() -> None:
    case = audit_cases({"mine": assign(preset("fedrec+private"), ["model.factors=4", "server.rounds=3"])})[-1]
    extent = AuditExtent(2, 30, ("shadow-deployment", "crowd"), {}, others(100))
    town = small_town()
    rows = {row["attack"]: row for row in audit_case(case, town, town, extent)}
    found = rows["shadow-deployment"]
    assert (found["knowing"], rows["crowd"]["knowing"]) == ("second data set", "nothing")
    assert found["auc"] > 0.6
    assert found["auc"] > found["auc_control"] + 0.05


def test_an_attack_without_its_data_set_is_left_out_or_refused() -> None:
    assert "shadow-deployment" not in AuditExtent().chosen
    with pytest.raises(UserError, match="knowing="):
        _ = AuditExtent(attacks=("shadow-deployment",)).chosen


def test_a_person_is_taken_out_of_what_was_learned_exactly() -> None:
    """As if the regression had been learned without: λ stays, since it belongs to the attacker."""
    ratings = small_town()
    rated = {client: ratings.of(client)[0] for client in range(CLIENTS)}
    every = KnownSets.learned(rated, ITEMS, 0.3)
    fewer = KnownSets.learned({client: items for client, items in rated.items() if client != 5}, ITEMS, 0.3)
    X = np.zeros((CLIENTS - 1, ITEMS))
    for row, items in enumerate(fewer.of_person.values()):
        X[row, items] = 1.0
    P = np.linalg.inv(X.T @ X + every.regression.decay * np.eye(ITEMS))
    B = np.eye(ITEMS) - P / np.diag(P)
    items, chance = np.arange(0, ITEMS, 3), np.linspace(0.1, 0.9, 40)
    mine = np.zeros(ITEMS)
    mine[items] = chance
    assert np.allclose(every.likely(items, chance, without=5), (mine @ B)[items])
