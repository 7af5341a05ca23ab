"""Ratings: by name, from a file, or made up; their scale, their items' catalogue, and how they are split."""

from typing import TYPE_CHECKING

from fedrecplus.data.describe import describe as describe
from fedrecplus.data.files.options import FileOptions as FileOptions
from fedrecplus.data.joining import check_rated as check_rated, concatenate as concatenate, join as join
from fedrecplus.data.load import RatingsLike as RatingsLike, from_frame as from_frame, load as load
from fedrecplus.data.ratings import (
    Catalogue as Catalogue,
    Ratings as Ratings,
    damped_means as damped_means,
    narrowest as narrowest,
)
from fedrecplus.data.scale import (
    LIKES as LIKES,
    STANDARD_HIGH as STANDARD_HIGH,
    STANDARD_LOW as STANDARD_LOW,
    Scale as Scale,
)
from fedrecplus.data.splits import Split as Split, folds as folds, split as split, validation_cut as validation_cut
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

lazily(__name__)
