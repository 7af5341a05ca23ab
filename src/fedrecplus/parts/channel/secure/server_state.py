"""What a secure sum's server asks of a cohort, and what it keeps of a sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from fedrecplus.parts.channel._ring import RingLayout
from fedrecplus.parts.channel.secure import graph
from fedrecplus.parts.channel.secure.messages import (
    NUMBER_BYTES,
    Advertisement,
    Complaint,
    Consent,
    MaskedVector,
    Refused,
    Reveal,
    SealedShares,
    to_number,
)

Sent = TypeVar("Sent", Advertisement, SealedShares, MaskedVector, Complaint, Consent, Reveal)


class Aborted(Exception):
    """The sum can't be finished, and nothing of it is known. The text gives the reason."""


@dataclass(frozen=True)
class ServerOptions:
    """What the server asks of a cohort."""

    least_cohort: int = 3
    """fewer survivors than this are no sum"""
    corrupted: float = 0.1
    """share of the cohort that may collude with the server"""
    dropout: float = 0.1
    """share of the cohort that may vanish"""
    sparse: bool = True
    """few neighbours each in a large cohort; otherwise everybody is everybody's neighbour"""
    fewest: int = 1
    """survivors that must span a row, where rows differ; clients refuse to unmask others"""
    honest: float = 0.0
    """share of the cohort that must survive, where devices add noise; clients refuse to unmask less"""


@dataclass
class Unmasking:
    """Shares that came back, by the client whose secret they restore: holder → share."""

    seeds: dict[int, dict[int, bytes]] = field(default_factory=dict)
    keys: dict[int, dict[int, bytes]] = field(default_factory=dict)


class KeptSum(msgspec.Struct, frozen=True):
    """A sum before its last stage, as a server keeps it. It holds no vector of anybody, only their masked sum."""

    session: bytes
    layout: RingLayout
    asked: list[int]
    options: ServerOptions
    plan: graph.GraphPlan
    adverts: list[Advertisement]
    neighbours: dict[int, tuple[int, ...]]
    shared: list[int]
    commitments: dict[int, bytes]
    vectors: list[int]
    consents: list[int]
    context: bytes
    total: bytes


def sent_by(message: Sent, sender: int) -> Sent:
    """The message, if it is in its sender's own name."""
    if len(message.sender) != NUMBER_BYTES:
        raise Refused(f"client {sender}: a sender of {len(message.sender)} bytes")
    if to_number(message.sender) != sender:
        raise Refused(f"client {sender} sent a message in the name of client {to_number(message.sender)}")
    return message
