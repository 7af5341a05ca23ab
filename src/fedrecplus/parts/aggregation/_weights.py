"""What rules share that give each client a weight."""

from __future__ import annotations

from typing import Literal

from fedrecplus.settings import Annotated, text
from fedrecplus.settings import Settings as _Settings


class WeightSettings(_Settings):
    """Options of every rule that gives weights."""

    normalise: Annotated[
        Literal["item", "cohort", "none"],
        text("divide the weighted sum by the weights per item (FedRec), over the cohort (paper), or not at all"),
    ] = "item"
    weigh_on: Annotated[
        Literal["server", "client"],
        text("who computes the weight w; a client sends w·Δ and w, and the server need not see Δ"),
    ] = "server"
