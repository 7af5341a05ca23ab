"""Shadow training on real people: a deployment over another public data set of the same items teaches the classifier.

The attacker runs the known program on the ratings of a second data set (``--knowing``), learns to tell its people's
rated rows from their pseudo rows, and which items go together in their ratings. After: Shokri et al. 2017
"""

from __future__ import annotations

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._taught import People, TaughtSettings, rows_of, teach
from fedrecplus.audit.transcript import SecondData


class ShadowDeployment(Attack[TaughtSettings]):
    """The attack."""

    SEES = ("values", "lists")
    KNOWING = "second data set"

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the client's last upload: the classifier's log odds that a row is rated."""
        second = transcript.knowledge.second
        if second is None or not transcript.config.hides_rows or not transcript.uploads(client):
            return ()
        key = ("shadow deployment", transcript.assumed, self.settings.learner, self.settings.teachers)
        scores = transcript.once(key, lambda: _taught(transcript, second, self.settings))
        last = rows_of(transcript, client).reading
        return (Guess(last.round, last.items, last.nearest(transcript.step), scores[client]),)


def _taught(transcript: Transcript, second: SecondData, settings: TaughtSettings) -> dict[int, Array]:
    """Log odds for all watched clients."""
    shadow = second.transcript
    shadow.assumed = transcript.assumed
    known = [client for client in shadow.clients if shadow.uploads(client)][: settings.teachers]
    teachers = People(shadow, [rows_of(shadow, client) for client in known], second.sets)
    truth = [second.sets.has(one.client, one.reading.items) for one in teachers.rows]
    asked = [client for client in transcript.clients if transcript.uploads(client)]
    pupils = People(transcript, [rows_of(transcript, one) for one in asked], second.sets, among=False)
    return dict(zip(asked, teach(teachers, truth, pupils, settings.learner), strict=True))
