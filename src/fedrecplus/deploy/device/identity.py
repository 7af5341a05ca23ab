"""A node's signing key, and the public keys of others that its owner got from elsewhere than the server.

Without pins a server that lies about keys could read every upload of a secure sum: only an honest but curious server is
claimed against then. With pins it can't: every key is signed, and so is who survived.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.identities import identity_number
from fedrecplus.errors import UserError

_KEY, _PINS = "identity", "pinned"


@dataclass(frozen=True)
class Identities:
    """This node's key, and everybody's by their number in sums."""

    own: Ed25519PrivateKey
    pins: Mapping[int, bytes]

    @classmethod
    def load(cls, store: Store) -> Identities:
        """The node's; its key is made on first use, from the operating system."""
        pins = [bytes.fromhex(key) for key in json.loads(store.fact(_PINS) or "[]")]
        return cls(own_key(store), {identity_number(key): key for key in pins})

    @property
    def pinned(self) -> bool:
        """Whether the owner has pinned anybody."""
        return bool(self.pins)

    @property
    def number(self) -> int:
        """What this node is called in sums with pinned identities."""
        return identity_number(self.own.public_key().public_bytes_raw())

    def for_sums(self) -> dict[str, Any]:
        """The arguments of ``SecureClient``."""
        return {"identity": self.own, "pinned": self.pins} if self.pinned else {}


def own_key(store: Store) -> Ed25519PrivateKey:
    """The node's signing key; within no transaction."""
    kept = store.fact(_KEY)
    if kept is not None:
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(kept))
    key = Ed25519PrivateKey.generate()
    with store.changing():
        store.put("facts", [(_KEY, key.private_bytes_raw().hex())])
    return key


def pin_identities(store: Store, keys: Iterable[bytes]) -> None:
    """Take part in sums among these alone from now on, this node included; nobody: pin nothing any more."""
    found = {key.hex() for key in keys}
    own = own_key(store).public_key().public_bytes_raw().hex()
    if found and own not in found:
        raise UserError(
            "this node's own identity is not among those to pin", "add what `fedrecplus node identity` says"
        )
    with store.changing():
        store.put("facts", [(_PINS, json.dumps(sorted(found)))])
