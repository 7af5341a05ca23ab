"""The unrated items most like something the client rated: the choice of FedRec+."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import PseudoItems, SetSettings
from fedrecplus.parts.similarity import similarity
from fedrecplus.protocol import Broadcast


class Similar(PseudoItems[SetSettings]):
    """The top k by cosine."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfPseudoItems(popularity=0.3, co_occurrence="pseudo", most_similar=True)

    def select(self, count: int, device: Device, broadcast: Broadcast) -> NDArray[np.int64]:
        """The top k unrated items by their greatest cosine with a rated one; ties go to the lower item number.

        Paper: Section "Feature similarity for pseudo items", Algorithm 1, line 3
        """
        items = len(broadcast.V)
        unrated = np.setdiff1d(np.arange(items), device.items)
        if count >= len(unrated):
            return unrated
        # the least cosine there is, for a client that rated nothing
        scores = similarity(broadcast.features[unrated], broadcast.features[device.items]).max(axis=1, initial=-1.0)
        best_first = np.lexsort((unrated, -scores))
        return np.sort(unrated[best_first[:count]])
