"""Ratings: by name, from a file, or made up; their scale, their items' catalogue, and how they are split."""

from fedrecplus.data.describe import describe
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.load import RatingsLike, from_frame, load
from fedrecplus.data.progress import Progress, progress_bar
from fedrecplus.data.ratings import Catalogue, Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.data.splits import Split, folds, split, validation_cut

__all__ = [
    "Catalogue",
    "FileOptions",
    "Progress",
    "Ratings",
    "RatingsLike",
    "Scale",
    "Split",
    "describe",
    "folds",
    "from_frame",
    "load",
    "progress_bar",
    "split",
    "validation_cut",
]
