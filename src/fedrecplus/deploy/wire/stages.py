"""The stages of a secure sum on the wire: each is a request and a reply, and carries one message of the protocol.

The first stage rides on a round's request, which has V and the settings too. What messages hold, and what is checked of
them, is the protocol's business (``parts/channel/secure``); here it is checked that a message belongs to this model,
round, session and stage, and is no longer than such a message can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedrecplus.deploy.wire.packet import VERSION, Facts, Packet, Refusal, check_reply, mismatch

if TYPE_CHECKING:
    from fedrecplus.config import Config

FIRST = "advertise"
STAGES = (FIRST, "share", "mask", "consent", "reveal")
SESSION_BYTES = 16
_MOST_OF_ONE = 512
"""bytes that a message has for each participant of a sum, at most, beside its own part"""
LARGEST_MESSAGE = 30_000_000
"""bytes: Flower refuses requests of 32 MB before it reads them"""


@dataclass(frozen=True)
class Stage:
    """Which message is due, of which sum."""

    model: str
    round: int
    session: bytes
    name: str

    @property
    def facts(self) -> Facts:
        """As they travel."""
        session = self.session.hex()
        return {"version": VERSION, "model": self.model, "round": self.round, "session": session, "stage": self.name}

    @classmethod
    def of(cls, facts: Facts) -> Stage:
        """The stage in a packet's facts; ``Refusal`` where they make no sense."""
        try:
            session, name = bytes.fromhex(str(facts["session"])), str(facts["stage"])
            int(str(facts["model"]), 16)
            stage = cls(str(facts["model"]), int(facts["round"]), session, name)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise Refusal("request", "a stage of no sum") from None
        if len(session) != SESSION_BYTES or name not in STAGES:
            raise Refusal("request", "a stage that this protocol doesn't have")
        return stage


def is_secure(config: Config) -> bool:
    """Whether uploads go into secure sums."""
    return config.channel.rule == "secure"


def mask_context(persons: int) -> bytes:
    """What masks are bound to beside the session: the persons that a sum has room for set every number's scale."""
    return b"persons" + persons.to_bytes(8, "big")


def is_later_stage(packet: Packet) -> bool:
    """Whether a request is of a sum's second stage or a later one."""
    return packet.facts.get("stage") not in (None, FIRST)


def encode_stage(stage: Stage, message: bytes, **more: int) -> Packet:
    """A request or a reply of one stage."""
    return Packet({**stage.facts, **more}, {"message": np.frombuffer(message, dtype=np.uint8)})


def message_of(packet: Packet) -> bytes:
    """The protocol's message in a packet."""
    table = packet.arrays.get("message")
    if table is None or table.dtype != np.uint8 or table.ndim != 1 or len(packet.arrays) != 1:
        raise Refusal("malformed", "no message, or more than one")
    return table.tobytes()


def decode_stage_request(packet: Packet) -> tuple[Stage, bytes]:
    """What a node is asked in a later stage."""
    wrong = mismatch(packet.facts.get("version"), "the server")
    if wrong:
        raise Refusal("version", wrong)
    stage = Stage.of(packet.facts)
    if packet.size > LARGEST_MESSAGE:
        raise Refusal("request", f"a message of {packet.size} bytes")
    return stage, message_of(packet)


def decode_stage_reply(packet: Packet, due: Stage, most: int) -> bytes:
    """The message of a node's reply, if it is of this stage and not longer than ``most`` bytes."""
    check_reply(packet)
    if packet.size > most:
        raise Refusal("oversized", f"{packet.size} bytes, at most {most} are due")
    for name, value in due.facts.items():
        if name != "version" and packet.facts.get(name) != value:
            raise Refusal("late" if name in ("round", "session") else "malformed", f"another {name}")
    return message_of(packet)


def longest_message(stage: str, participants: int, vector: int, rows: int) -> int:
    """The most bytes that a reply of a stage can have: keys, shares for everybody, or a vector."""
    own = {FIRST: rows, "share": _MOST_OF_ONE * participants, "mask": vector, "reveal": _MOST_OF_ONE * participants}
    return _MOST_OF_ONE + own.get(stage, 0)
