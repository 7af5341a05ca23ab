"""Certificates and keys, made on first use: an authority and a server certificate, and a key pair for each node."""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fedrecplus.deploy.extra import require_flower
from fedrecplus.errors import UserError

CA, SERVER, SERVER_KEY = "ca.crt", "server.crt", "server.key"
NODE_KEY, NODE_PUBLIC = "node.key", "node.pub"
_CA_KEY = "ca.key"
_YEARS, _SERVER_DAYS = 10, 825


def make_server_certificates(folder: Path, hosts: list[str]) -> None:
    """An authority if there is none, and a server certificate for these hosts if there is none."""
    require_flower()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / CA).exists():
        _make_authority(folder)
    if not (folder / SERVER).exists():
        _make_server(folder, hosts)


def make_node_key(folder: Path) -> Path:
    """A node's key pair if there is none; returns the public part. Flower wants an elliptic curve, P-384."""
    require_flower()
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (folder / NODE_KEY).exists():
        key = ec.generate_private_key(ec.SECP384R1())
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        (folder / NODE_PUBLIC).write_bytes(public + b" fedrecplus node\n")
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        _write_secret(folder / NODE_KEY, secret)
    return folder / NODE_PUBLIC


def check_public_key(path: Path) -> None:
    """Refuse a file that isn't a node's public key."""
    try:
        known = path.read_bytes()[:40].startswith(b"ecdsa-sha2-nistp")
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}", f"give the {NODE_PUBLIC} that `node key` made on the node"
        ) from None
    if not known:
        raise UserError(f"{path} is no node's public key", f"give the {NODE_PUBLIC} that `node key` made on the node")


def _make_authority(folder: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fedrecplus authority")])
    builder = _certificate(name, name, key.public_key(), 365 * _YEARS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(sign_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    _write_key(folder / _CA_KEY, key)
    _write_certificate(folder / CA, builder, key)


def _make_server(folder: Path, hosts: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    if not (folder / _CA_KEY).exists():
        raise UserError(
            f"{folder / _CA_KEY} is missing", f"put it back, or put a {SERVER} and {SERVER_KEY} of yours there"
        )
    authority: Any = serialization.load_pem_private_key((folder / _CA_KEY).read_bytes(), None)
    issuer = x509.load_pem_x509_certificate((folder / CA).read_bytes())
    key = ec.generate_private_key(ec.SECP384R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fedrecplus server")])
    names = [_general_name(host) for host in dict.fromkeys(["localhost", "127.0.0.1", "::1", *hosts])]
    builder = _certificate(subject, issuer.subject, key.public_key(), _SERVER_DAYS)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(sign_certificates=False), critical=True)
    purpose = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(purpose, critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    builder = builder.add_extension(identifier, critical=False)
    _write_key(folder / SERVER_KEY, key)
    _write_certificate(folder / SERVER, builder, authority)


def _general_name(host: str) -> Any:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, sign_certificates: bool) -> Any:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not sign_certificates, key_cert_sign=sign_certificates, crl_sign=sign_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _certificate(subject: Any, issuer: Any, public_key: Any, days: int) -> Any:
    from cryptography import x509

    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public_key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
    return builder.not_valid_after(now + timedelta(days=days))


def _write_certificate(path: Path, builder: Any, signer: Any) -> None:
    from cryptography.hazmat.primitives import hashes, serialization

    path.write_bytes(builder.sign(signer, hashes.SHA384()).public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: Any) -> None:
    from cryptography.hazmat.primitives import serialization

    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_secret(path, text)


def _write_secret(path: Path, content: bytes) -> None:
    """Readable by its owner alone from the first byte on."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
