"""How much each client's update counts, or how single updates are joined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

from fedrecplus.arrays import Array, Items
from fedrecplus.parts.aggregation._covariance import (
    check_full as check_full,
    update_covariance as update_covariance,
    update_variance as update_variance,
)
from fedrecplus.parts.part import Part, S
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.settings import Annotated, Settings, text


class WeightSettings(Settings):
    """Options of every rule that gives weights."""

    normalise: Annotated[
        Literal["item", "cohort", "none"],
        text("divide the weighted sum by the weights per item (FedRec), over the cohort (paper), or not at all"),
    ] = "item"
    weigh_on: Annotated[
        Literal["server", "client"],
        text("who computes the weight w; a client sends w·Δ and w, and the server need not see Δ"),
    ] = "server"


W = TypeVar("W", bound=WeightSettings)


class ByDistance(NamedTuple):
    """w = unit · D^(−τ), D a squared distance from the last step, bounded from below."""

    rows: str = "mean-own"
    """that D runs over"""
    temperature: float = 0.0
    """τ; with 0 all clients weigh the same"""
    bound: float = 0.0
    """D is at least this share of the step's size"""
    smallest: float = 0.0
    """D is at least this"""
    unit: float = 1.0
    """factor on every weight, which everybody knows"""


class Aggregation(Part[S]):
    """One step from many updates: a ``WeightedAggregation`` or a ``RobustAggregation``."""

    kind: ClassVar[str] = "aggregation"
    label: ClassVar[str] = "aggregation rule"

    @property
    @abstractmethod
    def needs_uploads(self) -> bool:
        """Whether the server must see single uploads: sums are not enough."""

    @property
    def weighs_on_client(self) -> bool:
        """Whether clients weigh themselves."""
        return False

    @property
    def normalise(self) -> str:
        """What sums are divided by: the weights per ``item``, those of the ``cohort``, or ``none``."""
        return "item"

    @property
    def covariance_kind(self) -> str:
        """Which covariance of the clients' updates it looks at: ``none``, ``diagonal`` or ``full``."""
        return "none"

    @property
    def batch_size(self) -> int:
        """B of the local steps, for that covariance: the setting of that name, where there is one; 0: all rows."""
        return int(self.values.get("batch_size", 0))

    @property
    def against_mean(self) -> bool:
        """Whether it compares with this round's mean, so that uploads must be seen twice."""
        return False

    @property
    def over_table(self) -> bool:
        """Whether a weight depends on all rows of the table, and not on a client's own alone."""
        return False

    @property
    def largest_weight(self) -> float:
        """No honest client has a greater one."""
        return 1e12


class WeightedAggregation(Aggregation[W]):
    """A rule that gives each client a weight: a weighted sum is all that is needed."""

    CONSTANT: ClassVar[bool] = False
    """weights that no upload has a say in: whoever gives them need not see any"""

    @abstractmethod
    def weight(self, items: Items, delta: Array, broadcast: Broadcast) -> Any:
        """A client's weight, positive: from its items (…, n) and how their rows moved (…, n, columns)."""

    def by_distance(self, broadcast: Broadcast) -> ByDistance | None:
        """The weights in numbers, where they follow from distances to the last step: for fused kernels of a model."""
        return None

    @property
    def needs_uploads(self) -> bool:
        """Unless clients weigh themselves, or all weigh the same."""
        if "uploads" in self.NEEDS or self.covariance_kind != "none":
            return True
        return not self.weighs_on_client and not self.CONSTANT

    @property
    def weighs_on_client(self) -> bool:
        """As the settings say."""
        return self.settings.weigh_on == "client"

    @property
    def normalise(self) -> str:
        """As the settings say."""
        return self.settings.normalise


class RobustAggregation(Aggregation[S]):
    """A rule that joins single uploads, so that few of them can't do much."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({"uploads"})

    @abstractmethod
    def aggregate(self, uploads: Sequence[Upload], broadcast: Broadcast) -> Array:
        """A table like V: the row of each item that was uploaded, zero elsewhere."""

    @property
    def needs_uploads(self) -> bool:
        """It looks at each of them."""
        return True
