"""Answers that the server's database can't read: sealed on the device to a key in the coordinator's memory.

An ephemeral X25519 key, HKDF-SHA256 and ChaCha20-Poly1305; the context (which question of which node) is bound to it.
It protects what lies in the database and its backups, not from the server, whose coordinator has the key.
"""

from __future__ import annotations

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedrecplus.deploy.wire.packet import Refusal

_KEY, _NONCE = 32, bytes(12)
"""bytes of a key; a nonce that is used once, since every message has a key of its own"""


def seal(content: bytes, public: bytes, context: bytes) -> bytes:
    """The sealed content: the ephemeral public key, then the ciphertext."""
    own = X25519PrivateKey.generate()
    sender = own.public_key().public_bytes_raw()
    secret = own.exchange(X25519PublicKey.from_public_bytes(public))
    return sender + ChaCha20Poly1305(_derived(secret, sender + public)).encrypt(_NONCE, content, context)


class SealingKey:
    """A private key that is nowhere but in this process."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What ``seal`` sealed to this key in this context; ``Refusal`` for anything else."""
        sender = sealed[:_KEY]
        try:
            secret = self._private.exchange(X25519PublicKey.from_public_bytes(sender))
            cipher = ChaCha20Poly1305(_derived(secret, sender + self.public))
            return cipher.decrypt(_NONCE, sealed[_KEY:], context)
        except (ValueError, InvalidTag):
            raise Refusal("malformed", "not sealed to this server's key") from None


def _derived(secret: bytes, keys: bytes) -> bytes:
    return HKDF(SHA256(), _KEY, None, b"fedrecplus answer" + keys).derive(secret)
