"""The mean of those clients whose rows lie where most others' lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.parts.aggregation import RobustAggregation
from fedrecplus.parts.aggregation._rows_by_item import rows_by_item
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Annotated, Settings as _Settings, number

TIE = 1e-9
"""scores that differ by less than this share are equal: two rows may be each other's nearest"""


class Settings(_Settings):
    """Options of the rule."""

    hostile: Annotated[float, number(0, 0.5, "share of an item's rows that may be hostile")] = 0.1


class Krum(RobustAggregation[Settings]):
    """Multi-Krum by item."""

    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """Per item, the mean of the n − f rows with the best scores among n uploaded ones, f a share ``hostile``.

        Deviation: Krum chooses one whole model. Clients send different rows here, so each item elects its own; and the
        row of one client is a multiple of that client's U, so the n − f best are averaged (Multi-Krum).
        After: Blanchard, El Mhamdi, Guerraoui, Stainer 2017.
        """
        table = np.zeros(broadcast.V.shape)
        for item, rows in rows_by_item(uploads):
            kept, neighbours = electorate(len(rows), self.settings.hostile)
            if kept == len(rows):
                table[item] = rows.mean(axis=0)
                continue
            score = scores(rows, neighbours)
            limit = np.sort(score)[kept - 1]
            table[item] = rows[score <= limit + TIE * abs(limit)].mean(axis=0)
        return table


def electorate(clients: int, hostile: float) -> tuple[int, int]:
    """How many rows are kept, n − f, and how many nearest ones a score runs over, n − f − 2.

    >>> electorate(20, 0.1)
    (18, 16)

    After: Blanchard, El Mhamdi, Guerraoui, Stainer 2017.
    """
    suspects = min(int(hostile * clients), (clients - 1) // 2)
    return clients - suspects, max(clients - suspects - 2, 1)


def scores(rows: Array, neighbours: int) -> Array:
    """Sum of each row's squared distances to its nearest others: small in a crowd.

    After: Blanchard, El Mhamdi, Guerraoui, Stainer 2017.
    """
    centred = rows - rows.mean(axis=0)
    squares = (centred**2).sum(axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2.0 * centred @ centred.T, 0.0)
    np.fill_diagonal(distances, np.inf)
    nearest: Array = np.partition(distances, neighbours - 1, axis=1)[:, :neighbours].sum(axis=1)
    return nearest
