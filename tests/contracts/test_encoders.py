"""What every encoder promises. A new file in encoders/ is enrolled by being there."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.errors import UserError
from fedrecplus.parts import choices, part
from fedrecplus.protocol import PublicItems
from fedrecplus.similarity import unit_rows
from tests.contracts.one_round import broadcast_of, problem_of, read_only

ENCODERS = choices("encoders")
PROBLEM = problem_of()
V = broadcast_of(PROBLEM).V
PUBLIC = read_only(PROBLEM.public)
ITEMS = len(V)


def cosines(encoder: str, table: np.ndarray, public: PublicItems) -> np.ndarray:
    unit = unit_rows(part("encoders", encoder).encode(table, public))
    return unit @ unit.T


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_item_has_one_finite_row(encoder: str) -> None:
    features = part("encoders", encoder).encode(V, PUBLIC)
    assert features.ndim == 2
    assert len(features) == ITEMS
    assert np.isfinite(features).all()
    assert (np.linalg.norm(unit_rows(features), axis=1) <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_encoding_twice_gives_the_same(encoder: str) -> None:
    encode = part("encoders", encoder).encode
    assert (encode(V, PUBLIC) == encode(V, PUBLIC)).all()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_likeness_does_not_depend_on_how_items_are_numbered(encoder: str) -> None:
    order = np.random.default_rng(1).permutation(ITEMS)
    shuffled = PublicItems(PUBLIC.content[order], PUBLIC.popularity[order])
    expected = cosines(encoder, V, PUBLIC)[np.ix_(order, order)]
    np.testing.assert_allclose(cosines(encoder, V[order], shuffled), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("encoder", ["identity", "centred"])
def test_rows_follow_their_items(encoder: str) -> None:
    order = np.random.default_rng(2).permutation(ITEMS)
    encode = part("encoders", encoder).encode
    np.testing.assert_allclose(encode(V[order], PUBLIC), encode(V, PUBLIC)[order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_items_that_are_all_alike_and_unrated_are_no_accident(encoder: str) -> None:
    nobody = PublicItems(PUBLIC.content, np.zeros(ITEMS, np.int64))
    features = part("encoders", encoder).encode(np.full((ITEMS, 4), 0.5), nobody)
    assert np.isfinite(unit_rows(features)).all()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_without_a_catalogue_it_works_or_says_what_else_would(encoder: str) -> None:
    bare = PublicItems(np.zeros((ITEMS, 0)), PUBLIC.popularity)
    try:
        remedy, features = "", part("encoders", encoder).encode(V, bare)
    except UserError as error:
        remedy, features = error.remedy, np.zeros((ITEMS, 0))
    assert np.isfinite(features).all()
    assert remedy == "" or "pseudo_items.encoder=" in remedy


def test_centred_cosines_do_not_change_with_a_common_part() -> None:
    np.testing.assert_allclose(cosines("centred", V + 3.0, PUBLIC), cosines("centred", V, PUBLIC), rtol=0, atol=1e-9)


def test_whitened_features_have_the_same_variance_in_every_direction() -> None:
    features = part("encoders", "whitened").encode(V, PUBLIC)
    np.testing.assert_allclose(features.T @ features / ITEMS, np.eye(V.shape[1]), rtol=0, atol=1e-8)
