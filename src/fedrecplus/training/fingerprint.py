"""A fingerprint of ratings: whether two runs saw the same data."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from fedrecplus.data.ratings import Ratings


def fingerprint(training: Ratings, test: Ratings | None) -> str:
    """A hash over what is trained and tested on, names and titles aside."""
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
