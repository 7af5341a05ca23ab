"""An upload that was singled out of sums, read as if it had been sent."""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Guess, Transcript
from fedrecplus.audit.attacks._reading import Reading, together
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.audit.transcript import Sent
from fedrecplus.protocol import Sums, Upload

_WHOLE, _MOSTLY = 0.05, 0.99
"""a row has the client's weight or none, up to so much, in such a share of all rows: else weights aren't sent"""
_CERTAIN = 8.0
"""spreads above what most items have, where a row is taken to be the client's"""
_FARTHEST = 50.0
"""spreads above the middle beyond which all is certain"""
_SHARP = 0.1
_ENOUGH = 0.6
"""share of the ratings that lie within ``_SHARP`` steps of the scale, where a reading is one; by chance it is .2"""


def read_single(transcript: Transcript, client: int, round_number: int, single: Sums) -> Guess:
    """Sums over one client: the rows that have weight, or values, are those it rated, and the values are its upload.

    Ratings are guessed only where they come out on the scale: noise in the sums leaves nothing to read.
    """
    present = single.weights / max(abs(single.overall), 1e-300)
    moved = standing_out(np.linalg.norm(single.total, axis=1))
    counted = np.mean(np.abs(present - np.clip(np.rint(present), 0.0, 1.0)) < _WHOLE) > _MOSTLY
    items = np.flatnonzero(present > 0.5 if counted else moved > _CERTAIN)
    ratings = np.full(len(present), np.nan)
    if len(items) > 1:
        upload = Upload(client, items, single.total[items], single.overall)
        reading = together(transcript, (Sent(round_number, 0, upload),))[0]
        if sharp(transcript, reading):
            ratings[items] = reading.nearest(transcript.step)
    _, asked = rows_in_question(transcript, client)
    score = standing_out(present) + moved
    return Guess(round_number, asked, ratings[asked], score[asked])


def standing_out(values: Array) -> Array:
    """How far each value is above what most items have, in units of their spread: most items are nobody's."""
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    least = 1e-6 * float(np.abs(values).max(initial=0.0)) + 1e-300
    above: Array = np.clip((values - middle) / max(spread, least), -_FARTHEST, _FARTHEST)
    return np.asarray(above.round(3), dtype=np.float64)


def rows_in_question(transcript: Transcript, client: int) -> tuple[int, Items]:
    """The last round and all items; or, where the server sees lists, the client's first upload and its rows."""
    for one in transcript.uploads(client)[:1]:
        return one.round, one.upload.items
    return transcript.rounds[-1], np.arange(len(transcript.public.popularity))


def sharp(transcript: Transcript, reading: Reading) -> bool:
    """Whether the ratings of a reading lie on the scale more often than by chance."""
    off = np.abs(reading.ratings - on_scale(reading.ratings, transcript.step)) / transcript.step
    return bool(np.mean(np.nan_to_num(off, nan=1.0) < _SHARP) > _ENOUGH)
