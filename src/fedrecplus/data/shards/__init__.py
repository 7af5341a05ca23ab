"""Ratings as Parquet files, some clients in each, so that nobody ever holds all of them."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
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

lazily(__name__)
