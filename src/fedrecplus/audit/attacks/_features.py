"""All that the other attacks compute for a row, side by side: what the shadow classifier looks at."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks import Transcript, silent
from fedrecplus.audit.attacks._evidence import count_evidence, residual_evidence, scale_evidence
from fedrecplus.audit.attacks._prior import against_group
from fedrecplus.audit.attacks._reading import Reading, in_rows_of, of_model, reading
from fedrecplus.audit.attacks.crowd import co_occurrence, public_groups
from fedrecplus.audit.attacks.neighbours import copies, likeness, reach
from fedrecplus.audit.attacks.taste import fit
from fedrecplus.audit.attacks.u_step import UStep

_SHRINK = 3.0
CROSSED = 24
"""so many features come first that are looked at in pairs, too"""


def features_of(transcript: Transcript, client: int) -> tuple[Reading, Array]:
    """See ``features``; computed once, whoever asks."""
    return transcript.once(("features", transcript.assumed, client), lambda: features(transcript, client))


def features(transcript: Transcript, client: int) -> tuple[Reading, Array]:
    """The client's last upload, and for each of its rows a line of numbers comparable between clients.

    Most are ranks within the upload, as normal deviates: clients differ in scale, and made-up ones from real ones.
    """
    sent = transcript.uploads(client)
    whole = [one for one in sent if one.upload.counts is None] or list(sent)
    last, before, first = (reading(transcript, one) for one in (whole[-1], whole[-2:][0], whole[0]))
    present = np.mean([np.isin(last.items, one.upload.items) for one in sent], axis=0)
    ranked = _ranked(transcript, client, first, last)
    plain = _plain(transcript, before, last, present)
    return last, np.column_stack([*plain, *ranked, *_in_groups(transcript, last, ranked)])


def _in_groups(transcript: Transcript, last: Reading, ranked: list[Array]) -> list[Array]:
    """Where the rule uploads whole public groups: each row against the others of its group, and whether it is alone."""
    groups = public_groups(transcript)
    if groups is None:
        return []
    group = np.unique(groups[last.items], return_inverse=True)[1]
    alone = (np.bincount(group)[group] == 1).astype(np.float64)
    return [*(against_group(transcript, last.items, column) for column in ranked), alone]


def _ranked(transcript: Transcript, client: int, first: Reading, last: Reading) -> list[Array]:
    found = co_occurrence(transcript, client, last.items)
    outer, inner = likeness(transcript, client, last)
    consensus = _consensus(transcript, client, last.items)
    surprise = last.ratings - transcript.public.averages()[last.items]
    columns = [
        transcript.public.popularity[last.items].astype(np.float64),
        np.abs(last.errors),
        last.errors,
        in_rows_of(last.items, first.items, np.abs(first.errors)),
        last.ratings,
        last.ratings - consensus,
        np.abs(last.ratings - consensus),
        consensus,
        surprise,
        np.abs(surprise - _mean(surprise)),
        found.likely,
        found.lift,
        found.share,
        fit(transcript, last.items),
        outer,
        inner,
        copies(transcript, client, last),
        reach(transcript, client, last),
        _u_step_shares(transcript, client, last),
    ]
    return [deviates(column) for column in columns]


def _plain(transcript: Transcript, before: Reading, last: Reading, present: Array) -> list[Array]:
    change = np.abs(in_rows_of(last.items, before.items, before.ratings) - last.ratings) / transcript.step
    counted = np.zeros(len(last.items)) if last.counts is None else count_evidence(last.counts)
    return [
        scale_evidence(transcript, last) / 4.0,
        residual_evidence(transcript, last),
        np.asarray(present, dtype=np.float64) * 4.0,
        np.minimum(np.nan_to_num(change, nan=1.0), 1.0),
        counted / 4.0,
    ]


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else 0.0


def deviates(values: Array) -> Array:
    """Ranks within the upload as normal deviates; the middle where there is no value."""
    known = np.isfinite(values)
    found = np.zeros(len(values))
    if known.sum() > 1:
        found[known] = ndtri((rankdata(values[known]) - 0.5) / known.sum())
    return found


def _u_step_shares(transcript: Transcript, client: int, last: Reading) -> Array:
    of = of_model(transcript)
    if of is not None and of.over == "rated":
        for guess in UStep().attack(transcript, client):
            return in_rows_of(last.items, guess.items, guess.rated)
    return silent(last.items)


def _consensus(transcript: Transcript, client: int, items: Items) -> Array:
    """Mean of the ratings that other clients' uploads show for an item, pulled to the overall mean where few do."""
    total, number, by_client = transcript.source.once("consensus", lambda: _shown(transcript.source))
    own = by_client.get(transcript.origin(client))
    total, number = total.copy(), number.copy()
    overall = float(total.sum() / max(number.sum(), 1.0))
    if own is not None:
        total[own[0]] -= own[1]
        number[own[0]] -= 1.0
    mean: Array = (total[items] + _SHRINK * overall) / (number[items] + _SHRINK)
    return mean


def _shown(transcript: Transcript) -> tuple[Array, Array, dict[int, tuple[Items, Array]]]:
    items = len(transcript.public.popularity)
    total, number = np.zeros(items), np.zeros(items)
    by_client = {}
    for client in transcript.clients:
        read = reading(transcript, transcript.uploads(client)[-1])
        known = np.isfinite(read.ratings)
        values = np.clip(read.ratings[known], 1.0, 5.0)
        total[read.items[known]] += values
        number[read.items[known]] += 1.0
        by_client[client] = (read.items[known], values)
    return total, number, by_client
