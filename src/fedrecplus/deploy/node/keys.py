"""A node's Ed25519 key, by which a server knows it: made on first use."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)

from fedrecplus.errors import UserError
from fedrecplus.files import check_private, check_writable, write_private, write_text

NODE_KEY, NODE_PUBLIC = "node.key", "node.pub"
"""names of the files in a device's home"""


def make_node_key(folder: Path) -> Path:
    """A node's key pair if there is none; returns the public part."""
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / NODE_KEY).exists():
        key = Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        write_text(folder / NODE_PUBLIC, f"{public.decode()} fedrecplus node\n")
        write_private(folder / NODE_KEY, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return folder / NODE_PUBLIC


def read_node_key(path: Path) -> Ed25519PrivateKey:
    """A node's private key."""
    remedy = "take the node.key that `fedrecplus node key` made"
    check_private(path)
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", remedy) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UserError(f"{path} is no private key", remedy) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(f"{path} is a key of another kind", remedy)
    return key


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of a node's public key."""
    remedy = f"give the {NODE_PUBLIC} that `node key` made on the node"
    try:
        key = load_ssh_public_key(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", remedy) from None
    except (ValueError, UnsupportedAlgorithm):
        raise UserError(f"{path} is no node's public key", remedy) from None
    if not isinstance(key, Ed25519PublicKey):
        raise UserError(f"{path} is a key of another kind", remedy)
    return key.public_bytes_raw()
