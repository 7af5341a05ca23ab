"""Certificates and keys, made on first use: an authority and a server certificate."""

from __future__ import annotations

import ipaddress
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat

from fedrecplus.errors import UserError
from fedrecplus.files import beside, write_private

CA, SERVER, SERVER_KEY = "ca.crt", "server.crt", "server.key"
_CA_KEY = "ca.key"
_CA_DAYS, _SERVER_DAYS = 3650, 825


def make_server_certificates(folder: Path, hosts: list[str]) -> None:
    """An authority if there is none, and a server certificate if there is none, or none for these hosts.

    A host that comes later gets a new certificate by the same authority, for all names so far: nodes keep theirs.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for host in hosts:
        _general_name(host)  # before anything is written
    if not (folder / CA).exists():
        if (folder / SERVER).exists():  # a new authority would have no part in this certificate, which is in use
            raise UserError(f"{folder / CA} is missing", "put it back from a backup, or `server renew --authority`")
        key, name = ec.generate_private_key(ec.SECP384R1()), _name("fedrecplus authority")
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        _write_key(folder / _CA_KEY, key)
        _certify(folder / CA, name, name, key, key, _CA_DAYS, [identifier], authority=True)
    known = names_of(folder)
    if not known or not {*hosts} <= {*known} or not _fit(folder):
        _make_server(folder, [*known, *hosts])


def renewed_certificate(folder: Path, hosts: list[str]) -> None:
    """A new server certificate of the same authority, for these hosts and those of the old one; nodes need nothing."""
    names = [name for name in [*names_of(folder), *hosts] if name not in ("localhost", "127.0.0.1", "::1")]
    _make_server(folder, list(dict.fromkeys(names)))


def rotate(folder: Path, hosts: list[str]) -> Path:
    """A new authority and a new server certificate; returns where the old ones are. Nodes need the new ca.crt."""
    names = [*names_of(folder), *hosts]
    old = folder.with_name(f"{folder.name}.{datetime.now(UTC):%Y%m%d%H%M%S}")
    folder.rename(old)
    make_server_certificates(folder, names)
    return old


def names_of(folder: Path) -> list[str]:
    """The hosts that the server certificate is for."""
    if not (folder / SERVER).exists():
        return []
    try:
        certificate = x509.load_pem_x509_certificate((folder / SERVER).read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise UserError(f"{folder / SERVER}: {error}", "put a sound certificate there, or delete it") from None
    return [str(name.value) for name in names]


def _fit(folder: Path) -> bool:
    """Whether key and certificate are of each other: a kill may have come between the two."""
    try:
        key = serialization.load_pem_private_key((folder / SERVER_KEY).read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((folder / SERVER).read_bytes())
    except (OSError, ValueError):
        return False
    return bool(key.public_key() == certificate.public_key())


def _make_server(folder: Path, hosts: list[str]) -> None:
    if not (folder / _CA_KEY).exists():
        remedy = f"put it back, or put a {SERVER} and {SERVER_KEY} of yours there"
        raise UserError(f"{folder / _CA_KEY} is missing", remedy)
    try:
        authority: Any = serialization.load_pem_private_key((folder / _CA_KEY).read_bytes(), None)
        issuer = x509.load_pem_x509_certificate((folder / CA).read_bytes()).subject
    except (OSError, ValueError, TypeError):
        remedy = "put them back from a backup, or `server renew --authority`"
        raise UserError(f"{folder / _CA_KEY} and {CA} are no key with its certificate", remedy) from None
    key = ec.generate_private_key(ec.SECP384R1())
    names = [_general_name(host) for host in dict.fromkeys(["localhost", "127.0.0.1", "::1", *hosts])]
    extensions = [
        x509.SubjectAlternativeName(names),
        x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()),
    ]
    _write_key(folder / SERVER_KEY, key)
    _certify(folder / SERVER, _name("fedrecplus server"), issuer, key, authority, _SERVER_DAYS, extensions)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not re.fullmatch(r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9_-]+)*\.?", host):
            raise UserError(f"{host!r} is no name of a machine", "write letters abroad as xn--…") from None
        return x509.DNSName(host)


def _certify(
    path: Path, subject: x509.Name, issuer: x509.Name, key: Any, signer: Any, days: int,
    extensions: list[x509.ExtensionType], *, authority: bool = False,
) -> None:  # fmt: skip
    """Write a certificate of a key."""
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=not authority, key_cert_sign=authority, crl_sign=authority,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(hours=1))
    builder = builder.not_valid_after(now + timedelta(days=days)).add_extension(usage, critical=True)
    builder = builder.add_extension(x509.BasicConstraints(authority, 0 if authority else None), critical=True)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    with beside(path) as temporary:
        temporary.write_bytes(builder.sign(signer, hashes.SHA384()).public_bytes(Encoding.PEM))


def _write_key(path: Path, key: Any) -> None:
    """Readable by its owner alone from the first byte on."""
    write_private(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, serialization.NoEncryption()))


def days_left(path: Path) -> float:
    """Days until a certificate expires; 0 where there is none."""
    try:
        end = x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return 0.0
    return (end - datetime.now(UTC)).total_seconds() / 86_400
