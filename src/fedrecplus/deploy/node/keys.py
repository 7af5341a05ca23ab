"""A node's Ed25519 key, by which a server knows it: made on first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    check_private(path)
    remedy = "take the node.key that `fedrecplus node key` made"
    key: Ed25519PrivateKey = _read(path, lambda content: load_ssh_private_key(content, None), Ed25519PrivateKey, remedy)
    return key


def read_public_key(path: Path) -> bytes:
    """The 32 bytes of a node's public key."""
    remedy = f"give the {NODE_PUBLIC} that `node key` made on the node"
    key: Ed25519PublicKey = _read(path, load_ssh_public_key, Ed25519PublicKey, remedy)
    return key.public_bytes_raw()


def _read(path: Path, load: Callable[[bytes], object], kind: type[Any], remedy: str) -> Any:
    try:
        key = load(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", remedy) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise UserError(f"{path} is no node's key", remedy) from None
    if not isinstance(key, kind):
        raise UserError(f"{path} is a key of another kind", remedy)
    return key
