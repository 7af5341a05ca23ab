"""Joining a server by a link: who it is, and a code that lets in once."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

from fedrecplus.deploy.node.connection import ServerConnection, trust
from fedrecplus.deploy.node.home import CA, JOINING, MODEL
from fedrecplus.deploy.node.keys import NODE_KEY, NODE_PUBLIC, make_node_key, read_node_key
from fedrecplus.deploy.wire.task import LONGEST_TASK, Task
from fedrecplus.errors import UserError
from fedrecplus.files import beside

_HTTPS = 443
_LONGEST, _LONGEST_MODEL = 64 * 2**10, 512 * 2**20
"""bytes of an answer; the first one comes from whoever answers there"""
_AGAIN = "ask the operator for a new link (`server invite`)"


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
    task: str = ""
    """digest of the task that whoever joins agrees to; empty where there is none yet"""

    def __str__(self) -> str:
        task, where = f"&task={self.task}" if self.task else "", self.address.removesuffix(f":{_HTTPS}")
        return f"https://{where}/#code={self.code}&authority={self.fingerprint}{task}"

    @property
    def address(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Invitation:
        """Read a link."""
        try:
            parts = urlsplit(text.strip())
            facts = {name: values[0] for name, values in parse_qs(parts.fragment, strict_parsing=True).items()}
            names = (facts["code"], facts["authority"].lower(), facts.get("task", "").lower())
            link = cls(str(parts.hostname or ""), int(parts.port or _HTTPS), *names)
            if link.task and len(bytes.fromhex(link.task)) != 32:
                raise ValueError
            if parts.scheme != "https" or not link.host or len(bytes.fromhex(link.fingerprint)) != 32:
                raise ValueError
        except (ValueError, KeyError):
            raise UserError("this is no invitation", f"give the whole link in quotes; or {_AGAIN}") from None
        return link


def fingerprint(authority: bytes) -> str:
    """SHA-256 of a certificate in PEM."""
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(authority.decode("ascii"))).hexdigest()
    except ValueError:
        raise UserError("the authority is no certificate", "put ca.crt back from a backup") from None


def join_by(link: Invitation, home: Path, name: str) -> tuple[int, str]:
    """Pin the server's authority, and let it take this node's key; returns the node's number and name.

    The certificate is fetched over a connection that nobody vouches for, and believed only if the link's fingerprint is
    its own; the code goes over one that it vouches for. Another server than the one that this home has joined before
    gets another key, or it could hand requests on to that one, and both could tell who is the same. What was there
    stays until it has let this node in.
    """
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    authority = _call(link, ServerConnection(link.host, link.port, unverified), "GET", "/v1/authority")
    try:
        same = hmac.compare_digest(fingerprint(authority), link.fingerprint)
    except (ValueError, UnicodeError):
        same = False
    if not same:
        raise UserError(f"{link.address} is not the server that the link was made by", f"don't join; {_AGAIN}")
    elsewhere = _is_of_another(home / CA, link)
    place = home / JOINING if elsewhere else home
    make_node_key(place)
    with beside(place / CA) as temporary:
        temporary.write_bytes(authority)
    fetch_task(link, place)  # a server that has another task is not joined
    body = msgspec.msgpack.encode({"code": link.code, "name": name})
    reply = msgspec.msgpack.decode(_call(link, _connection(link, place), "POST", "/v1/join", body))
    if elsewhere:
        for file in (NODE_KEY, NODE_PUBLIC, CA):
            (place / file).replace(home / file)
        place.rmdir()
    return int(reply["node"]), str(reply["name"])


def _is_of_another(ca: Path, link: Invitation) -> bool:
    """Whether a home has joined a server already, and another one than the link's."""
    try:
        return ca.exists() and fingerprint(ca.read_bytes()) != link.fingerprint
    except (UserError, UnicodeError):  # it is damaged: nothing is joined with it
        return False


def fetch_task(link: Invitation, home: Path) -> Task | None:
    """The task that the link names, of which the server hands out the text; None where it names none."""
    if not link.task:
        return None
    content = _call(link, _connection(link, home), "GET", f"/v1/objects/{link.task}", longest=LONGEST_TASK)
    try:
        task = Task.parse(content.decode())
    except ValueError:
        task = None
    if task is None or task.digest != link.task:
        raise UserError(f"{link.address} has another task than the link names", f"don't join; {_AGAIN}")
    return task


def fetch_model(link: Invitation, home: Path) -> Path | None:
    """The server's current model, so that the first list needs no round; None where it has none."""
    server = _connection(link, home)
    try:
        digest = str(msgspec.msgpack.decode(_call(link, server, "GET", "/v1/status"))["model"])
        content = _call(link, server, "GET", f"/v1/objects/{digest}", longest=_LONGEST_MODEL) if digest else b""
    except UserError:
        return None
    if not content or hashlib.sha256(content).hexdigest() != digest:
        return None
    with beside(home / MODEL / "model.safetensors") as temporary:
        temporary.write_bytes(content)
    return home / MODEL


def _connection(link: Invitation, home: Path) -> ServerConnection:
    return ServerConnection(link.host, link.port, trust(home / CA), read_node_key(home / NODE_KEY))


def _call(
    link: Invitation, server: ServerConnection, method: str, target: str, body: bytes = b"", longest: int = _LONGEST
) -> bytes:
    return server.ask(method, target, body, longest, _AGAIN)
