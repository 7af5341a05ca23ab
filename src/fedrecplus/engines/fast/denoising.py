"""What the messages of ``parts/channel/denoising.py`` would have cost, where sums are made without pseudo rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import kernel, subkey
from fedrecplus.engines.fast.rows import PseudoRows
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import RoundReport
from fedrecplus.parts.channel import Channel
from fedrecplus.parts.channel.denoising import Denoising, denoisers
from fedrecplus.protocol import BYTES_PER_NUMBER, Broadcast
from fedrecplus.randomness import to_unit

_CELLS = 1 << 26
"""of a table of clients and items"""


def counts(channel: Channel[Any]) -> bool:
    """Whether the channel is the one whose messages are counted here."""
    return isinstance(channel, Denoising) and channel.is_built_in


def report_of(problem: Problem, message: Broadcast, clients: Clients, pseudo: PseudoRows) -> RoundReport:
    """Bytes of the messages that ``exchange`` makes, counted from their sizes."""
    columns, config = message.V.shape[1], problem.config
    rows = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
    chosen = denoisers(clients, message.round, config.seed, config.channel.settings)
    ordinary = np.setdiff1d(clients, chosen)
    noise = BYTES_PER_NUMBER * int(np.diff(pseudo.indptr)[ordinary].sum()) * (1 + columns)
    plain = BYTES_PER_NUMBER * int(rows[ordinary].sum()) * (1 + columns)
    summed = BYTES_PER_NUMBER * _denoiser_rows(problem, message.round, chosen, ordinary, pseudo) * (2 + columns)
    down = len(clients) * message.bytes
    return RoundReport(len(clients), plain + noise + summed, down + noise)


def _denoiser_rows(problem: Problem, round_number: int, chosen: Clients, ordinary: Clients, pseudo: PseudoRows) -> int:
    """Rows that denoising clients upload: their own rated items and those they were told of, each once."""
    draws = to_unit(subkey(problem.secrets[ordinary], "denoiser", round_number))  # as ``denoiser_of`` draws
    of_ordinary = (draws * len(chosen)).astype(np.int64)
    rows, ratings = 0, problem.ratings
    for first in range(0, len(chosen), block := max(1, _CELLS // ratings.item_count)):
        part = chosen[first : first + block]
        seen = np.zeros((len(part), ratings.item_count), np.bool_)
        present = (of_ordinary >= first) & (of_ordinary < first + block)
        mark(part, np.arange(len(part)), ratings.indptr, ratings.items, seen)
        mark(ordinary[present], of_ordinary[present] - first, pseudo.indptr, pseudo.items, seen)
        rows += int(np.count_nonzero(seen))
    return rows


@kernel
def mark(clients: Any, lines: Any, indptr: Any, items: Any, seen: Any) -> None:
    """Mark clients' items in a table, each client's in a line."""
    for number in range(len(clients)):
        for at in range(indptr[clients[number]], indptr[clients[number] + 1]):
            seen[lines[number], items[at]] = True
