"""Ratings made up from a low-rank truth."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.data.synthetic.truth import SYNTHETIC as SYNTHETIC, SyntheticOptions as SyntheticOptions

lazily(__name__)
