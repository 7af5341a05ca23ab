"""The unrated items most like something the client rated: the choice of FedRec+."""

from __future__ import annotations

from fedrecplus.arrays import greatest, places_of
from fedrecplus.device import Device
from fedrecplus.parts.assumptions import OfPseudoItems
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems, SetSettings, candidates
from fedrecplus.parts.similarity import likeness_to_rated
from fedrecplus.protocol import Broadcast


class Similar(PseudoItems[SetSettings]):
    """The top k by cosine."""

    NEEDS = frozenset({"features"})
    ATTACKER = OfPseudoItems(popularity=0.3, co_occurrence="pseudo", most_similar=True)

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        """The top k unrated items by their greatest cosine with a rated one; ties go to the lower item number.

        Paper: Section "Feature similarity for pseudo items", Algorithm 1, line 3
        """
        xp, unrated, wanted = candidates(count, device.items, len(broadcast.V))
        scores = xp.where(unrated, likeness_to_rated(broadcast.features, device.items), -2.0)
        return places_of(greatest(scores, wanted), int(xp.max(wanted)))
