"""Everything that a single upload shows: its rank-one structure, the rating scale, residuals, popularity."""

from __future__ import annotations

from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._evidence import evidence
from fedrecplus.audit.attacks._reading import readings
from fedrecplus.settings import Settings


class OneRound(Attack[Settings]):
    """The attack."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Each upload by itself: ratings by scale, rows by what they say about being real."""
        return tuple(
            Guess(reading.round, reading.items, reading.nearest(transcript.step), evidence(transcript, reading))
            for reading in readings(transcript, client)
        )
