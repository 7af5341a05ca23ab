"""Ratings: by name, from a file, or made up; their scale, their items' catalogue, and how they are split."""

from typing import TYPE_CHECKING

from fedrecplus.data.describe import describe
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.joining import check_rated, concatenate, join
from fedrecplus.data.load import RatingsLike, from_frame, load
from fedrecplus.data.progress import Progress, progress_bar
from fedrecplus.data.ratings import (
    Catalogue,
    Ratings,
    damped_means,
    narrowest,
)
from fedrecplus.data.scale import (
    LIKES,
    STANDARD_HIGH,
    STANDARD_LOW,
    Scale,
)
from fedrecplus.data.splits import Split, folds, split, validation_cut
from fedrecplus.lazy import lazily

if TYPE_CHECKING:  # waits for polars
    from fedrecplus.data.adding import added as added, without as without
    from fedrecplus.data.frames import (
        as_polars as as_polars,
        backend_of as backend_of,
        frame_of as frame_of,
        is_frame as is_frame,
        tabular as tabular,
    )

__all__ = [
    "LIKES",
    "STANDARD_HIGH",
    "STANDARD_LOW",
    "Catalogue",
    "FileOptions",
    "Progress",
    "Ratings",
    "RatingsLike",
    "Scale",
    "Split",
    "check_rated",
    "concatenate",
    "damped_means",
    "describe",
    "folds",
    "from_frame",
    "join",
    "load",
    "narrowest",
    "progress_bar",
    "split",
    "validation_cut",
]

lazily(__name__)
