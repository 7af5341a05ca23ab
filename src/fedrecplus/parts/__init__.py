"""The choices of a training: a file is a choice, and owns everything about itself.

Each kind is a typed base class, generic in its settings, in the package of its choices; what is optional has a default.
An instance is a choice together with its settings.
"""

from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import Aggregation
from fedrecplus.parts.assumptions import (
    OfModel,
    OfPseudoItems,
    OfVirtualRatings,
)
from fedrecplus.parts.channel import Channel
from fedrecplus.parts.encoder import Encoder
from fedrecplus.parts.model import Model
from fedrecplus.parts.part import (
    Part,
    S,
    built_in,
    choices,
    classes_in,
    import_outside,
    is_outside,
    part_class,
    summary_of,
)
from fedrecplus.parts.privacy import Mechanism
from fedrecplus.parts.pseudo_items import PseudoItems
from fedrecplus.parts.recency import (
    DECAYS,
    LONG_AGO,
    MOMENT,
    VALIDATED,
    recency_weights,
)
from fedrecplus.parts.server_optimizer import ServerOptimizer
from fedrecplus.parts.similarity import similarity_matrix, unit_rows
from fedrecplus.parts.tree import hidden_leaves, unpack
from fedrecplus.parts.virtual_ratings import VirtualRatings

__all__ = [
    "DECAYS",
    "KINDS",
    "LONG_AGO",
    "MOMENT",
    "VALIDATED",
    "Aggregation",
    "Channel",
    "Encoder",
    "Mechanism",
    "Model",
    "OfModel",
    "OfPseudoItems",
    "OfVirtualRatings",
    "Part",
    "PseudoItems",
    "S",
    "ServerOptimizer",
    "VirtualRatings",
    "built_in",
    "choices",
    "hidden_leaves",
    "is_outside",
    "kinds_of",
    "part_class",
    "recency_weights",
    "similarity_matrix",
    "summary_of",
    "unit_rows",
    "unpack",
]

KINDS: dict[str, type[Part[Any]]] = {
    kind.kind: kind
    for kind in (
        Model,
        Encoder,
        PseudoItems,
        VirtualRatings,
        Aggregation,
        ServerOptimizer,
        Channel,
        Mechanism,
    )
}
"""the kinds that a config chooses from, each a section of it"""


def kinds_of(path: str) -> tuple[str, ...]:
    """The kinds that a module outside the package is a part of, by its classes."""
    module = import_outside("rule", path, path)
    kinds = tuple(kind.kind for kind in KINDS.values() if classes_in(kind, module))
    if not kinds:
        raise UserError(f"{path} is no part: it has no class of one", "see docs/extending.md")
    return kinds
