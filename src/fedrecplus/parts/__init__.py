"""The choices of a training: a file is a choice, and owns everything about itself.

Each kind is a typed base class, generic in its settings, in the package of its choices; what is optional has a default.
An instance is a choice together with its settings.
"""

from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import Aggregation as Aggregation
from fedrecplus.parts.assumptions import (
    OfModel as OfModel,
    OfPseudoItems as OfPseudoItems,
    OfVirtualRatings as OfVirtualRatings,
)
from fedrecplus.parts.channel import Channel as Channel
from fedrecplus.parts.encoder import Encoder as Encoder
from fedrecplus.parts.model import Model as Model
from fedrecplus.parts.part import (
    Part as Part,
    S as S,
    built_in as built_in,
    choices as choices,
    classes_in,
    import_outside,
    is_outside as is_outside,
    part_class as part_class,
    summary_of as summary_of,
)
from fedrecplus.parts.privacy import Mechanism as Mechanism
from fedrecplus.parts.pseudo_items import PseudoItems as PseudoItems
from fedrecplus.parts.recency import (
    DECAYS as DECAYS,
    LONG_AGO as LONG_AGO,
    MOMENT as MOMENT,
    VALIDATED as VALIDATED,
    recency_weights as recency_weights,
)
from fedrecplus.parts.server_optimizer import ServerOptimizer as ServerOptimizer
from fedrecplus.parts.similarity import similarity_matrix as similarity_matrix, unit_rows as unit_rows
from fedrecplus.parts.tree import hidden_leaves as hidden_leaves, unpack as unpack
from fedrecplus.parts.virtual_ratings import VirtualRatings as VirtualRatings

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
