"""The parameters of a model as a tree of named leaves: what is shared, what is summed, what stays on the device.

A leaf says what it is for, how large it is, and who may see what one device has of it. On the way, leaves of a kind lie
beside each other in one flat array, in the order of the tree: item tables are the columns of V, dense arrays and
statistics are the numbers beside an upload's rows, and private leaves are what a device keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

Role = Literal["table", "dense", "statistic", "private", "own"]
Seen = Literal["device", "sums", "uploads"]


class Leaf(NamedTuple):
    """One array of a model's parameters."""

    role: Role
    """``table``: a row per item; ``dense``: one array for all; ``statistic``: comes up alone; ``private``: stays, as
    does ``own``, a row per item"""
    shape: tuple[int, ...]
    """of tables: of one row"""
    seen: Seen
    """who may see one device's: the server in its ``uploads``, nobody but in ``sums``, or the ``device`` itself"""

    @classmethod
    def table(cls, columns: int, seen: Seen = "uploads") -> Leaf:
        """A row per item, which goes down, and comes up changed, for the items of an upload."""
        return cls("table", (columns,), seen)

    @classmethod
    def dense(cls, *shape: int, seen: Seen = "sums") -> Leaf:
        """An array that goes down to everybody; everybody's change of it comes up."""
        return cls("dense", shape, seen)

    @classmethod
    def statistic(cls, *shape: int, seen: Seen = "sums") -> Leaf:
        """Numbers that come up to be summed."""
        return cls("statistic", shape, seen)

    @classmethod
    def private(cls, *shape: int) -> Leaf:
        """What a device keeps between rounds."""
        return cls("private", shape, "device")

    @classmethod
    def own(cls, columns: int) -> Leaf:
        """A row per item that a device keeps between rounds."""
        return cls("own", (columns,), "device")

    @property
    def size(self) -> int:
        """Numbers; of a table, in one row."""
        return math.prod(self.shape)


Tree = Mapping[str, Leaf]


def size_of(tree: Tree, *roles: Role) -> int:
    """Numbers of all leaves of some kinds.

    >>> size_of({"V": Leaf.table(8), "layer": Leaf.dense(8, 4), "bias": Leaf.dense(4)}, "dense")
    36
    """
    return sum(leaf.size for leaf in tree.values() if leaf.role in roles)


def unpack(tree: Tree, flat: NDArray[Any], *roles: Role) -> dict[str, NDArray[Any]]:
    """The leaves of some kinds by name, as views of a flat array (…, numbers) that holds them, kind after kind."""
    leaves, first = {}, 0
    for role in roles:
        for name, leaf in tree.items():
            if leaf.role == role:
                leaves[name] = flat[..., first : first + leaf.size].reshape((*flat.shape[:-1], *leaf.shape))
                first += leaf.size
    return leaves


def hidden_leaves(tree: Tree) -> tuple[str, ...]:
    """Leaves that come up, and of which nobody may see what one device sends."""
    return tuple(name for name, leaf in tree.items() if leaf.seen == "sums")
