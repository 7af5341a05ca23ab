"""Joining a server by a link: who it is, and a code that lets in once. Nothing here imports Flower."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fedrecplus.deploy.light import NODE_KEY, Key, trust
from fedrecplus.errors import UserError
from fedrecplus.files import beside

SCHEME = "fedrecplus"
_AGAIN = "ask the operator for a new link (`server invite`)"
_LONGEST, _LONGEST_MODEL = 64 * 2**10, 512 * 2**20
"""bytes of an answer; the first one comes from whoever answers there"""


@dataclass(frozen=True)
class Invitation:
    """What an invitation says.

    >>> link = Invitation("fed.example.org", 9092, "c0de", "ab" * 32)
    >>> Invitation.parse(str(link)) == link
    True
    """

    host: str
    port: int
    code: str
    fingerprint: str
    """SHA-256 of the authority's certificate"""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}://{host}:{self.port}/join?code={self.code}&authority={self.fingerprint}"

    @property
    def address(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Read a link."""
        try:
            parts = urlsplit(text.strip())
            facts = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
            link = cls(str(parts.hostname or ""), int(parts.port or 0), facts["code"], facts["authority"].lower())
            if parts.scheme != SCHEME or not link.host or not link.port or len(bytes.fromhex(link.fingerprint)) != 32:
                raise ValueError
        except (ValueError, KeyError):
            raise UserError("this is no invitation", f"give the whole link in quotes; or {_AGAIN}") from None
        return link


def fingerprint(authority: bytes) -> str:
    """SHA-256 of a certificate in PEM."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(authority.decode("ascii"))).hexdigest()


def join_by(link: Invitation, home: Path, public_key: Path, name: str) -> tuple[int, str]:
    """Pin the server's authority, and let it take this node's key; returns the node's number and name.

    The certificate is fetched over a connection that nobody vouches for, and believed only if the link's fingerprint is
    its own; the code goes over one that it vouches for.
    """
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    authority = _ask(link, unverified, "GET", "authority")
    try:
        same = hmac.compare_digest(fingerprint(authority), link.fingerprint)
    except (ValueError, UnicodeError):
        same = False
    if not same:
        raise UserError(f"{link.address} is not the server that the link was made by", f"don't join; {_AGAIN}")
    with beside(home / "ca.crt") as temporary:
        temporary.write_bytes(authority)
    facts = {"code": link.code, "key": public_key.read_text(encoding="ascii"), "name": name}
    reply = json.loads(_ask(link, trust(home / "ca.crt"), "POST", "enrol", json.dumps(facts).encode()))
    return int(reply["node-id"]), str(reply["name"])


def fetch_model(link: Invitation, home: Path) -> Path | None:
    """The server's current model, so that the first list needs no round; None where it has none."""
    try:
        content = _ask(link, trust(home / "ca.crt"), "GET", "model", headers=Key(home / NODE_KEY).headers())
    except UserError:
        return None
    with beside(home / "model" / "model.safetensors") as temporary:
        temporary.write_bytes(content)
    return home / "model"


def _ask(
    link: Invitation, tls: ssl.SSLContext, method: str, what: str, body: bytes | None = None,
    headers: dict[str, str] | None = None,
) -> bytes:  # fmt: skip
    longest = _LONGEST_MODEL if what == "model" else _LONGEST
    connection = http.client.HTTPSConnection(link.host, link.port, timeout=30, context=tls)
    try:
        connection.request(method, f"/v1/join/{what}", body, headers or {})
        reply = connection.getresponse()
        content = reply.read(longest + 1)
    except ssl.SSLError as error:
        raise UserError(
            f"{link.address}: {error}", "the link must have the name that the server's certificate has"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"{link.address} doesn't answer: {error}", "check the network, and that the server is up"
        ) from None
    finally:
        connection.close()
    if reply.status == 429:
        raise UserError("the server wants no more tries for now", "try again in a minute")
    if reply.status != 200 or len(content) > longest:
        said = "".join(letter for letter in content[:200].decode("utf-8", "replace") if letter.isprintable())
        raise UserError(f"{link.address}: {said}", _AGAIN)
    return content
