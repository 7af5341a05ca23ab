"""A node's key, by which a server knows it: made on first use, on P-384 as Flower wants it."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from fedrecplus.deploy.device import check_private
from fedrecplus.deploy.light.facts import NODE_KEY, NODE_PUBLIC
from fedrecplus.errors import UserError
from fedrecplus.files import write_private


def make_node_key(folder: Path) -> Path:
    """A node's key pair if there is none; returns the public part."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / NODE_KEY).exists():
        key = ec.generate_private_key(ec.SECP384R1())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        (folder / NODE_PUBLIC).write_bytes(public + b" fedrecplus node\n")
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        write_private(folder / NODE_KEY, private)
    return folder / NODE_PUBLIC


class Key:
    """A node's private key."""

    def __init__(self, path: Path) -> None:
        remedy = "take the node.key that `fedrecplus node key` made"
        check_private(path)
        try:
            key = load_ssh_private_key(path.read_bytes(), None)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}", remedy) from None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise UserError(f"{path} is no private key", remedy) from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise UserError(f"{path} is a key of another kind", remedy)
        self._key = key
        self.public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def headers(self) -> dict[str, str]:
        """What proves who asks: a signature on the time."""
        at = datetime.now(UTC).isoformat()
        signature = self._key.sign(at.encode(), ec.ECDSA(hashes.SHA256()))
        return {
            "flwr-public-key": b64encode(self.public).decode(),
            "flwr-timestamp": at,
            "flwr-signature": b64encode(signature).decode(),
        }
