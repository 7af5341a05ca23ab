"""The step sizes of a client's local training, as far as a server can know them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.transcript import Transcript
from fedrecplus.gradients import StepSizes, kept_steady, rows_per_rating, step_sizes


def local_step_sizes(transcript: Transcript, round_number: int, V: NDArray[np.float64]) -> StepSizes:
    """The step sizes of a client that uploaded these rows.

    Where U is stepped over rated rows alone, the client knows these and the server does not: it takes the unevenness
    of all rows, and for their number what the ratio of pseudo items, which is public, makes of it.
    """
    config = transcript.config
    rated = len(V) / rows_per_rating(config) if config.client.u_step == "rated" else len(V)
    return kept_steady(step_sizes(config, round_number), V, max(rated, 1.0))
