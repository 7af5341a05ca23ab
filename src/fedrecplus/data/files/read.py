"""A user's own file of ratings."""

from __future__ import annotations

from pathlib import Path

from fedrecplus.data.files.check import checked_ratings
from fedrecplus.data.files.contents import read_bytes
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.parquet import MAGIC, read_parquet
from fedrecplus.data.files.text import read_text
from fedrecplus.data.ratings import Ratings


def read_file(path: Path, options: FileOptions | None = None) -> Ratings:
    """Read delimited text or Parquet, gzipped or not. What the file is, its first bytes and first line say."""
    options = options or FileOptions()
    data = read_bytes(path)
    read = read_parquet if data.startswith(MAGIC) else read_text
    return checked_ratings(read(data, str(path), options), path.name, options)
