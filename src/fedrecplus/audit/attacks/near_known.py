"""What a person chose close in time to something that is known of it: sums of a table of what comes soon after what.

Of each choice a device adds the rows of those beside it to the item's own row, T's rows being public. So the row of a
known item leans to the rows of what was chosen just before and after, and theirs to the known item's. Nothing is known
of when anything was chosen.
"""

from __future__ import annotations

import functools

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.audit.attacks.knows_some import Settings, rows_of
from fedrecplus.parts.model.sequence import Sequence

_NEAR = 0.3
"""part of a neighbour's row that is looked for: ½ of the next one's, less of those after it"""


class NearKnown(Attack[Settings]):
    """The attack."""

    SEES = ("sums",)
    KNOWING = "some ratings"
    LOG_ODDS = True

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of all items but the known ones: how known items' rows lean to theirs, and theirs to known items' rows."""
        model, some = transcript.config.model, transcript.knowledge.some
        if some is None or not isinstance(model, Sequence):
            return ()
        columns = slice(model.width, None)
        rounds = [t for t in transcript.rounds_of(columns) if client in transcript.cohorts[t]]
        if not rounds:
            return ()
        known = some(client, self.settings.ratings)[0]
        score = np.zeros(len(transcript.public.popularity))
        for t in rounds:
            leaning = transcript.once(("pairs", t), functools.partial(_pairs, transcript, model, t, columns))
            score += leaning[known].sum(axis=0) + leaning[:, known].sum(axis=1)
        items = np.setdiff1d(np.arange(len(score)), known)
        return (Guess(rounds[-1], items, silent(items), score[items], told=known),)


def _pairs(transcript: Transcript, model: Sequence, t: int, columns: slice) -> Array:
    """Items × items: the log likelihood ratio of the first one's row having some of the second one's in it."""
    E, rows = _NEAR * model.beside(transcript.broadcast(t)), rows_of(transcript, t, columns)
    toward = np.linalg.solve(rows.spread, E.T)
    ratio = rows.rest @ toward / np.sqrt(rows.raters)[:, None]
    ratio -= 0.5 * (E.T * toward).sum(axis=0) / rows.raters[:, None]
    return np.where(rows.summed[:, None], ratio, 0.0)
