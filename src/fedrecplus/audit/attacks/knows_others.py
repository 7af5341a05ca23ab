"""Whoever knows the ratings of everybody else recomputes their part of a sum and takes it off: one upload is left.

An assumption, not a finding: no exact sum withstands it, however it was computed. Noise does.
"""

from __future__ import annotations

from dataclasses import replace

from fedrecplus.audit.attacks._from_sums import read_single
from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Transcript
from fedrecplus.protocol import Sums

SEES = ("sums",)
KNOWING = "everybody else"


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Of the first and the last recorded round that the client was in: the sums less everybody else's."""
    others = transcript.knowledge.others
    rounds = [t for t, cohort in transcript.cohorts.items() if client in cohort and t in transcript.sums]
    if others is None:
        return ()
    chosen = dict.fromkeys((*rounds[:1], *rounds[-1:]))
    return tuple(read_single(transcript, client, t, less(transcript.sums[t], others.rest(client, t))) for t in chosen)


def less(sums: Sums, rest: Sums) -> Sums:
    """What is left of sums."""
    return replace(
        sums,
        total=sums.total - rest.total,
        weights=sums.weights - rest.weights,
        overall=sums.overall - rest.overall,
        clients=sums.clients - rest.clients,
    )
