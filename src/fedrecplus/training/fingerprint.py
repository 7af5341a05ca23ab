"""A fingerprint of ratings: whether two runs saw the same data."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from fedrecplus.data.ratings import Ratings
from fedrecplus.data.shards.read import ShardedRatings


def fingerprint(training: Ratings, test: Ratings | None) -> str:
    """A hash over what is trained and tested on, names and titles aside."""
    if isinstance(training, ShardedRatings):
        return hashlib.sha256(f"{training.folder.fingerprint()} fold {training.fold}".encode()).hexdigest()[:32]
    digest = hashlib.sha256()
    for ratings in (training, test):
        if ratings is None:
            digest.update(b"no test")
            continue
        digest.update(str(ratings.scale).encode())
        for table in (ratings.indptr, ratings.items, ratings.codes):
            digest.update(np.ascontiguousarray(table).tobytes())
    for ids in (training.client_ids, training.item_ids):
        digest.update(ids.tobytes() if ids.dtype.kind in "iu" else json.dumps(ids.tolist()).encode())
    return digest.hexdigest()[:32]
