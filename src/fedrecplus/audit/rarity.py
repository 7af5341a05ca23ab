"""An attack's figures by how many people rated an item: what few rated shows most, and means hide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.scoring import NOTHING, Said, area, placed, true_positives_at
from fedrecplus.audit.truth import AuditTruth

Array = NDArray[np.float64]
RATERS = {"≤ 2": (0, 2), "3–5": (3, 5), "6–10": (6, 10), "11–50": (11, 50), "> 50": (51, 10**9)}
"""of an item, the person included"""
FALSE_ALARMS = 0.01
_DRAWS = 200


def by_rarity(said: Said, controls: Said, truth: AuditTruth) -> list[dict[str, Any]]:
    """Items of all people together, by how many rated them: area and found ones, with and without the person.

    For attacks whose scores of different people are on one scale. Intervals are bootstrapped over people.
    """
    people = [_asked(client, said[client], controls.get(client, ()), truth) for client in said if said[client]]
    found = []
    for raters, (least, most) in RATERS.items():
        inside = [table[:, (table[0] >= least) & (table[0] <= most)] for table in people]
        figures = _figures(inside)
        if figures is None:
            continue
        draws = np.random.default_rng(0).integers(len(inside), size=(_DRAWS, len(inside)))
        again = [f for draw in draws if (f := _figures([inside[person] for person in draw])) is not None]
        low, high = np.quantile([f["auc"] - f["auc_control"] for f in again], [0.025, 0.975])
        items = int(sum(table.shape[1] for table in inside))
        found.append({"raters": raters, "items": items, **figures, "gain_interval": [float(low), float(high)]})
    return found


def _asked(client: int, said: Sequence[Any], control: Sequence[Any], truth: AuditTruth) -> Array:
    """Of one person's items in question: raters, whether rated, score, and score in the control."""
    items = truth.question(client, said[-1].told)
    scores = [placed(guesses[-1] if guesses else NOTHING, items)[0] for guesses in (said, control)]
    return np.stack([truth.popularity[items], ~np.isnan(truth.of(client, items)), *scores])


def _figures(people: Sequence[Array]) -> dict[str, float] | None:
    """None where there are no items to tell apart."""
    table = np.concatenate(people, axis=1) if people else np.zeros((4, 0))
    rated = table[1] > 0.0
    if rated.all() or not rated.any():
        return None
    return {
        "auc": area(table[2], rated),
        "auc_control": area(table[3], rated),
        "tpr_at_1pct_fpr": float(true_positives_at(table[2], rated, FALSE_ALARMS)),
        "tpr_at_1pct_fpr_control": float(true_positives_at(table[3], rated, FALSE_ALARMS)),
    }
