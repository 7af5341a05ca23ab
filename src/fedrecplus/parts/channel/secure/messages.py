"""The messages of a secure sum, as bytes. Every message names the version, the session and its stage.

``Refused`` is raised where a message can't be what it claims to be; its text says why.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

VERSION = 1
KEY_BYTES = 32


class Refused(Exception):
    """A message, or a call, that the protocol has no place for. The text gives the reason."""


class SecureMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What all messages have."""

    version: int
    session: bytes
    """which sum this belongs to; the same for all its messages"""


class Advertisement(SecureMessage, frozen=True, array_like=True, tag=0):
    """Client → server → its neighbours: fresh public keys, for this sum alone."""

    sender: int
    cipher_key: bytes
    """X25519, for the encryption of shares"""
    mask_key: bytes
    """X25519, for pairwise masks"""
    rows: bytes
    """which rows or blocks its vector spans, as bits; empty: the whole table"""
    signature: bytes = b""
    """Ed25519 by the sender's identity, where identities are pinned"""


class Neighbourhood(SecureMessage, frozen=True, array_like=True, tag=1):
    """Server → client: whom to share secrets and masks with."""

    threshold: int
    """shares that restore a secret"""
    cohort: int
    """clients that advertised keys"""
    neighbours: tuple[bytes, ...]
    """their advertisements, as sent"""


class SealedShares(SecureMessage, frozen=True, array_like=True, tag=2):
    """Client → server: a share of each of its two secrets for each neighbour, encrypted to that neighbour."""

    sender: int
    commitment: bytes
    """a hash of the self-mask seed, so that wrong shares of it are noticed"""
    sealed: tuple[tuple[int, bytes], ...]
    """(neighbour, ciphertext)"""


class Inbox(SecureMessage, frozen=True, array_like=True, tag=3):
    """Server → client: what neighbours sealed for it. Whoever is missing has dropped out and gets no masks."""

    sealed: tuple[tuple[int, bytes], ...]
    """(sender, ciphertext)"""


class MaskedVector(SecureMessage, frozen=True, array_like=True, tag=4):
    """Client → server: its ring vector plus its self mask and all pairwise masks."""

    sender: int
    data: bytes


class Survivors(SecureMessage, frozen=True, array_like=True, tag=5):
    """Server → client: whose vectors arrived."""

    count: int
    """over the whole cohort"""
    clients: tuple[int, ...]
    """ascending: the client and its neighbours; where identities are pinned, everybody, so that all sign the same"""


class Consent(SecureMessage, frozen=True, array_like=True, tag=6):
    """Client → server → its neighbours: its signature on the survivors that it was told."""

    sender: int
    signature: bytes


class Consents(SecureMessage, frozen=True, array_like=True, tag=7):
    """Server → client: the signatures of its neighbours on the survivors."""

    consents: tuple[tuple[int, bytes], ...]


class Reveal(SecureMessage, frozen=True, array_like=True, tag=8):
    """Client → server: one share per neighbour, of a survivor's seed or of the mask key of one that dropped out."""

    sender: int
    seeds: tuple[tuple[int, bytes], ...]
    """(survivor, share of its self-mask seed)"""
    keys: tuple[tuple[int, bytes], ...]
    """(neighbour that dropped out after sharing, share of its mask key)"""


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
