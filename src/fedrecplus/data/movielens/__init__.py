"""MovieLens by name: download, check, parse and cache."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.data.movielens.fetch import cached_path as cached_path
    from fedrecplus.data.movielens.sets import KNOWN as KNOWN

lazily(__name__)
