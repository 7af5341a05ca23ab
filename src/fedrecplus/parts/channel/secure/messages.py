"""The messages of a secure sum, as bytes. Every message names the version and the session.

Neighbours are always in ascending order, so a set of them is a string of bits and what belongs to each stands at its
place: sizes depend on nothing but how many there are. ``Refused`` is raised where a message can't be what it claims
to be; its text says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec
import numpy as np

VERSION = 2
KEY_BYTES = 32
NUMBER_BYTES = 8
SIGNATURE_BYTES = 64


class Refused(Exception):
    """A message, or a call, that the protocol has no place for. The text gives the reason."""


class SecureMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What all messages have."""

    version: int
    session: bytes
    """which sum this belongs to; the same for all its messages"""


class Advertisement(SecureMessage, frozen=True, array_like=True, tag=0):
    """Client → server → its neighbours: fresh public keys, for this sum alone."""

    sender: bytes
    cipher_key: bytes
    """X25519, for the encryption of shares"""
    mask_key: bytes
    """X25519, for pairwise masks"""
    rows: bytes
    """which rows or blocks its vector spans, as bits; empty: the whole table"""
    signature: bytes = b""
    """Ed25519 by the sender's identity, where identities are pinned"""

    @property
    def number(self) -> int:
        """The sender."""
        return to_number(self.sender)

    def record(self) -> bytes:
        """All that its neighbours need, one field after the other."""
        return self.sender + self.cipher_key + self.mask_key + self.rows + self.signature


class Neighbourhood(SecureMessage, frozen=True, array_like=True, tag=1):
    """Server → client: whom to share secrets and masks with."""

    threshold: int
    """shares that restore a secret"""
    cohort: int
    """clients that advertised keys"""
    records: bytes
    """of its neighbours' advertisements, ascending"""
    everybody: bytes = b""
    """where a cohort falls into groups with a sum each: the numbers of all who advertised keys, ascending"""


class SealedShares(SecureMessage, frozen=True, array_like=True, tag=2):
    """Client → server: a share of each of its two secrets for each neighbour, encrypted to that neighbour."""

    sender: bytes
    commitment: bytes
    """a hash of the self-mask seed, so that wrong shares of it are noticed"""
    sealed: bytes
    """a ciphertext per neighbour"""


class Inbox(SecureMessage, frozen=True, array_like=True, tag=3):
    """Server → client: what neighbours sealed for it. Whoever is missing has dropped out and gets no masks."""

    present: bytes
    """which neighbours, as bits"""
    sealed: bytes
    """a ciphertext of each of them"""


class MaskedVector(SecureMessage, frozen=True, array_like=True, tag=4):
    """Client → server: its ring vector plus its self mask and all pairwise masks."""

    sender: bytes
    data: bytes


class Survivors(SecureMessage, frozen=True, array_like=True, tag=5):
    """Server → client: whose vectors arrived."""

    count: int
    """over the whole cohort"""
    alive: bytes
    """which of the client and its neighbours, together in ascending order, as bits"""


class Consent(SecureMessage, frozen=True, array_like=True, tag=6):
    """Client → server → everybody: its signature on the survivors that it was told."""

    sender: bytes
    signature: bytes


class Consents(SecureMessage, frozen=True, array_like=True, tag=7):
    """Server → client: the signatures of its neighbours on the survivors."""

    present: bytes
    """which neighbours, as bits"""
    signatures: bytes


class Reveal(SecureMessage, frozen=True, array_like=True, tag=8):
    """Client → server: a share for each neighbour in its inbox: of a survivor's seed, of a vanished one's mask key."""

    sender: bytes
    shares: bytes


class Complaint(SecureMessage, frozen=True, array_like=True, tag=9):
    """Client → server, in the place of its vector: shares of these neighbours don't open, so there is no sum."""

    sender: bytes
    dealers: bytes
    """which neighbours, as bits"""


Message = TypeVar("Message", bound=SecureMessage)


def pack(message: SecureMessage) -> bytes:
    """A message as bytes."""
    return msgspec.msgpack.encode(message)


def unpack(kind: type[Message], data: bytes, session: bytes) -> Message:
    """The message in these bytes, if it is of the kind that is due, of this version and session."""
    try:
        message = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"no {kind.__name__}: {error}") from None
    if message.version != VERSION:
        raise Refused(f"version {message.version} of the protocol, not {VERSION}")
    if message.session != session:
        raise Refused("a message of another session: replayed or misdirected")
    return message


def to_bytes(number: int) -> bytes:
    """A client's number as it travels."""
    return number.to_bytes(NUMBER_BYTES, "big")


def to_number(data: bytes) -> int:
    """A client's number."""
    return int.from_bytes(data, "big")


def to_bits(chosen: Iterable[bool]) -> bytes:
    """A set of places as bits."""
    return np.packbits(np.fromiter(chosen, dtype=bool)).tobytes()


def from_bits(bits: bytes, among: Sequence[int]) -> list[int]:
    """Those of some clients whose bits are set."""
    if len(bits) != -(-len(among) // 8):
        raise Refused(f"{len(bits)} bytes can't be the bits of {len(among)} clients")
    flags = np.unpackbits(np.frombuffer(bits, np.uint8))
    if flags[len(among) :].any():
        raise Refused("a bit beyond the last client")
    return [among[place] for place in np.flatnonzero(flags).tolist()]


def cut(data: bytes, pieces: int, size: int) -> list[bytes]:
    """So many pieces of one size each; refused where the length is another."""
    if len(data) != pieces * size:
        raise Refused(f"{len(data)} bytes are not {pieces} times {size}")
    return [data[start : start + size] for start in range(0, len(data), size)]


def advertisements(message: Neighbourhood, rows_bytes: int, signed: bool) -> dict[int, Advertisement]:
    """Neighbour → what it advertised."""
    size = NUMBER_BYTES + 2 * KEY_BYTES + rows_bytes + SIGNATURE_BYTES * signed
    advertisements: dict[int, Advertisement] = {}
    for record in cut(message.records, len(message.records) // size, size):
        sender, keys, rest = record[:NUMBER_BYTES], record[NUMBER_BYTES:], record[NUMBER_BYTES + 2 * KEY_BYTES :]
        number = to_number(sender)
        if advertisements and number <= max(advertisements):
            raise Refused("neighbours stand twice or out of order in the neighbourhood")
        advertisements[number] = Advertisement(
            VERSION, message.session, sender, keys[:KEY_BYTES], keys[KEY_BYTES : 2 * KEY_BYTES],
            rest[:rows_bytes], rest[rows_bytes:],
        )  # fmt: skip
    return advertisements
