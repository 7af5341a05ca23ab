"""What every encoder promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError
from fedrecplus.parts import Encoder
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.protocol import PublicItems
from fedrecplus.testing.contract import Contract


class EncoderContract(Contract[Encoder[Any]]):
    """One finite row per item, by V and public things alone."""

    kind = "encoder"

    def encode(self, V: NDArray[np.float64], public: PublicItems) -> NDArray[np.float64]:
        """The features of items."""
        return self.part.encode(V, public)

    def test_every_item_has_one_finite_row_and_the_same_when_asked_again(self) -> None:
        """Also where all items are alike and nobody has rated any."""
        _, message, _ = self.round()
        nobody = replace(message.public, popularity=np.zeros(len(message.V), np.int64))
        for V, public in ((message.V, message.public), (np.full_like(message.V, 0.5), nobody)):
            features = self.encode(V, public)
            assert features.shape[0] == len(V)
            assert features.ndim == 2
            assert np.isfinite(features).all()
            np.testing.assert_array_equal(self.encode(V, public), features)

    def test_likeness_does_not_depend_on_how_items_are_numbered(self) -> None:
        """An item number means nothing."""
        _, message, _ = self.round()
        public, order = message.public, np.random.default_rng(1).permutation(len(message.V))
        shuffled = replace(
            public,
            content=public.content[order],
            popularity=public.popularity[order],
            average=public.average[order],
            years=public.years[order],
        )
        plain, other = unit_rows(self.encode(message.V, public)), unit_rows(self.encode(message.V[order], shuffled))
        np.testing.assert_allclose(other @ other.T, (plain @ plain.T)[np.ix_(order, order)], rtol=0, atol=1e-9)

    def test_without_a_catalogue_it_works_or_says_what_else_would(self) -> None:
        """Most data sets have no catalogue."""
        _, message, _ = self.round()
        remedy, features = "encoder.rule=", np.zeros(0)
        try:
            features = self.encode(message.V, PublicItems(np.zeros((len(message.V), 0)), message.public.popularity))
        except UserError as error:
            remedy = error.remedy
        assert "encoder.rule=" in remedy
        assert np.isfinite(features).all()
