"""Public counts and averages less everybody else's: what is left is one person's.

Whoever knows the ratings of all others does it with one published catalogue; whoever sees it published before and after
a person joined does it with two and knows nothing besides. Exact figures of the participants withstand neither.
"""

from __future__ import annotations

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._from_sums import rows_in_question
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.audit.attacks.constraints import item_sums
from fedrecplus.settings import Settings

_EXACT = 0.25
"""steps of the scale that a difference of sums may be off by, where it is read as a rating"""


class Statistics(Attack[Settings]):
    """The attack."""

    SEES = ("statistics",)
    KNOWING = "everybody else"

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of all items, or the rows in the client's list: how many raters are left, and the rating that is left."""
        if transcript.knowledge.others is None:
            return ()
        counts, sums = transcript.knowledge.others.statistics(client)
        left, rest = transcript.public.popularity - counts, item_sums(transcript) - sums
        near = on_scale(rest, transcript.step)
        sure = (np.abs(left - 1.0) < _EXACT) & (np.abs(near - rest) < _EXACT * transcript.step)
        last, items = rows_in_question(transcript, client)
        return (Guess(last, items, np.where(sure, near, np.nan)[items], left[items].astype(np.float64)),)
