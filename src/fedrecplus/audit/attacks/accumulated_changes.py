"""Counts the rounds in which a row's rating moves: real ratings stay, virtual ones that are made anew do not.

A single upload, or a pair, reads a rating with some error where there are several local epochs. Over all uploads the
errors average out, and a rating that is made anew each round from a model that learns keeps moving.
"""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._reading import in_rows_of, readings
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.settings import Settings

_ABSENT = 20.0


class AccumulatedChanges(Attack[Settings]):
    """The attack."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the last upload: how seldom and how little each row's rating moved in all uploads."""
        read = [reading for reading in readings(transcript, client) if reading.pure.all()]
        if len(read) < 2:
            return ()
        last = read[-1]
        ratings = np.stack([in_rows_of(last.items, one.items, one.ratings) for one in read])
        usual = _median(ratings)
        moved = np.abs(ratings - usual) / transcript.step
        known = np.isfinite(moved)
        rounds = np.maximum(known.sum(axis=0), 1)
        jumps = np.where(known, moved > 0.5, False).sum(axis=0) / rounds
        drift = np.where(known, np.minimum(moved, 1.0), 0.0).sum(axis=0) / rounds
        absent = np.mean([~np.isin(last.items, one.items) for one in read], axis=0)
        return (Guess(last.round, last.items, on_scale(usual, transcript.step), -jumps - drift - _ABSENT * absent),)


def _median(ratings: Array) -> Array:
    """Over rounds; nan where a row was never read."""
    read = np.isfinite(ratings).any(axis=0)
    found = np.full(ratings.shape[1], np.nan)
    found[read] = np.nanmedian(ratings[:, read], axis=0)
    return found
