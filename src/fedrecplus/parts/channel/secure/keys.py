"""Keys of a secure sum: agreement, encryption to a neighbour, signatures. Primitives are those of ``cryptography``."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedrecplus.parts.channel.secure.messages import KEY_BYTES, NUMBER_BYTES, Advertisement, Refused

_NAME = b"fedrecplus secure sum 1 "
_NONCE = bytes(12)
"""each key encrypts one message"""


def private_key(secret: bytes) -> X25519PrivateKey:
    """The X25519 key of 32 secret bytes. It takes as long as an agreement, so make it once for all neighbours."""
    return X25519PrivateKey.from_private_bytes(secret)


def public_key(private: X25519PrivateKey) -> bytes:
    """Its public key."""
    return private.public_key().public_bytes_raw()


def agree(private: X25519PrivateKey, other: bytes, purpose: bytes, context: bytes) -> bytes:
    """A key that only the two owners can compute: X25519, then HKDF bound to a purpose and a context."""
    if len(other) != KEY_BYTES:
        raise Refused("a public key of the wrong length")
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:
        raise Refused("a public key of low order: it agrees on a key that everybody knows") from None
    return derive(shared, purpose, context)


def derive(secret: bytes, purpose: bytes, context: bytes) -> bytes:
    """A key for one purpose."""
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=_NAME + purpose + b"\0" + context).derive(secret)


def pair(session: bytes, first: int, second: int) -> bytes:
    """The context of a key between two clients, from the first to the second."""
    return session + first.to_bytes(8, "big") + second.to_bytes(8, "big")


def seal(key: bytes, plain: bytes, header: bytes) -> bytes:
    """Encrypt and authenticate one message under a key of its own."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, plain, header)


def unseal(key: bytes, sealed: bytes, header: bytes, sender: int) -> bytes:
    """What was sealed; a changed ciphertext is refused."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, header)
    except InvalidTag:
        raise Refused(
            f"the shares that client {sender} sent were changed on the way, or are not for this client"
        ) from None


def sign(identity: Ed25519PrivateKey, purpose: bytes, content: bytes) -> bytes:
    """A signature for one purpose."""
    return identity.sign(_NAME + purpose + b"\0" + content)


def verify(identity: bytes, signature: bytes, purpose: bytes, content: bytes, sender: int) -> None:
    """Refuse a signature that is not the pinned identity's."""
    try:
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, _NAME + purpose + b"\0" + content)
    except (InvalidSignature, ValueError):
        raise Refused(f"client {sender}: the signature is not that of its pinned identity") from None


def pair_key(
    private: X25519PrivateKey, other: bytes, session: bytes, one: int, two: int, context: bytes = b""
) -> bytes:
    """The key of the mask that two clients share, if both were told the same ``context``."""
    return agree(private, other, b"pair mask", pair(session, min(one, two), max(one, two)) + context)


def cohort_context(everybody: bytes) -> bytes:
    """What masks of a group are bound to beside the rest: the cohort that it was drawn from."""
    return hashlib.sha256(everybody).digest() if everybody else b""


def mask_key(seed: bytes, session: bytes) -> bytes:
    """The key of a self mask."""
    return derive(seed, b"self mask stream", session)


def commit(session: bytes, seed: bytes) -> bytes:
    """What a client says of its seed, so that wrong shares of it are noticed. The seed has 256 random bits."""
    return hashlib.sha256(b"fedrecplus secure sum 1 seed\0" + session + seed).digest()


def signed_keys(session: bytes, sender: int, cipher: bytes, mask: bytes, rows: bytes) -> bytes:
    """What an advertisement's signature is on."""
    return pair(session, sender, len(rows)) + cipher + mask + rows


def signed_survivors(survivors: bytes, near: Iterable[int]) -> bytes:
    """What a consent's signature is on: the server's message, and the numbers of those whose bits it holds.

    Bits alone say places: clients that were told of different neighbours would sign the same bytes about other people.
    """
    return survivors + b"".join(number.to_bytes(NUMBER_BYTES, "big") for number in sorted(near))


def check_signature(advert: Advertisement, pinned: Mapping[int, bytes]) -> None:
    """Refuse keys that the pinned identity has not signed."""
    if advert.number not in pinned:
        raise Refused(f"client {advert.number} has no pinned identity")
    content = signed_keys(advert.session, advert.number, advert.cipher_key, advert.mask_key, advert.rows)
    verify(pinned[advert.number], advert.signature, b"advertise", content, advert.number)
