"""Ratings from a file of the user's own."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.data.files.read import ratings_of_frame as ratings_of_frame, read_file as read_file
    from fedrecplus.data.files.tables import pair_columns as pair_columns

lazily(__name__)
