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
    from fedrecplus.data.files.read import ratings_of_frame as ratings_of_frame, read_file as read_file
    from fedrecplus.data.files.tables import pair_columns as pair_columns
    from fedrecplus.data.frames import (
        as_polars as as_polars,
        backend_of as backend_of,
        frame_of as frame_of,
        is_frame as is_frame,
        tabular as tabular,
    )
    from fedrecplus.data.movielens.fetch import cached_path as cached_path
    from fedrecplus.data.movielens.sets import KNOWN as KNOWN
    from fedrecplus.data.shards.manifest import (
        Shard as Shard,
        ShardFolder as ShardFolder,
        is_shard_folder as is_shard_folder,
    )
    from fedrecplus.data.shards.read import (
        ShardedRatings as ShardedRatings,
        open_shards as open_shards,
        read_shard as read_shard,
    )
    from fedrecplus.data.shards.write import (
        of_clients as of_clients,
        shard_ratings as shard_ratings,
        shard_synthetic as shard_synthetic,
    )
    from fedrecplus.data.synthetic.truth import SYNTHETIC as SYNTHETIC, SyntheticOptions as SyntheticOptions

lazily(__name__)
