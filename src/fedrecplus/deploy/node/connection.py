"""A node's connection to its server: HTTP over one TLS connection, each request signed, errors by what to do next."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import random
import socket
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.deploy.wire.packet import one_line
from fedrecplus.deploy.wire.signatures import Signer
from fedrecplus.errors import UserError

_SECONDS, _TOO_MANY, _TIMED_OUT = 60.0, 429, 504
_LONGEST = 64 * 2**20
"""bytes of an answer"""
_TURN, _PAUSE = 600.0, 5.0
"""seconds that a person's call waits for its turn, where a whole school joins at once, and between two tries"""
_NOT_YET, _EXPIRED, _OTHER_NAMES = 9, 10, (62, 64)
"""OpenSSL's numbers of what is wrong with a certificate; the last two: its names, or its addresses"""
_NEW_CA = "get the server's ca.crt anew, by a way that you trust, and give it with --ca"


class NoAnswer(ConnectionError):
    """The server didn't answer, or couldn't: try again."""


class Broken(NoAnswer):
    """The connection broke before there was an answer."""


class CutOff(NoAnswer):
    """A proxy on the way didn't wait for the server's answer."""


class TooMany(NoAnswer):
    """The server takes no more requests from here at the moment."""


class Rejected(Exception):
    """The server refuses this request: asking again the same way is in vain."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(f"{status}: {why}" if why else str(status))
        self.status = status


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nobody else can reach it. A name is not, whatever it begins with.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "127.evil.example")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which says nothing of where it leads
        return False


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` in two.

    >>> split_address("shop.example:9092")
    ('shop.example', 9092)
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"{address!r} is no address", "write HOST:PORT, such as fed.example.org:9092")
    return host.strip("[]"), int(port)


def trust(ca: Path | None) -> ssl.SSLContext:
    """TLS to a server whose certificate this authority signed, and to no other; without one, any public authority."""
    remedy = "copy ca.crt from the server, and give it with --ca"
    if ca is None:
        return ssl.create_default_context()
    if not ca.exists():
        raise UserError(f"{ca} is missing", remedy)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=str(ca))
    except ssl.SSLError:
        raise UserError(f"{ca} is no certificate", remedy) from None
    except OSError as error:
        raise UserError(f"{ca}: {error.strerror}", remedy) from None
    return context


@dataclass
class ConnectionFigures:
    """What went over a node's connections, without TLS's own share, and what is known of the server's certificates."""

    up: int = 0
    """bytes of requests' bodies"""
    down: int = 0
    """bytes of answers' bodies"""
    last: float = 0.0
    """when the server answered last, in seconds since 1970"""
    certificates: dict[str, float] = field(default_factory=dict)
    """``server`` and ``authority``: when each expires, in seconds since 1970"""


class ServerConnection:
    """A server as a node calls it. Without ``tls`` the connection is plain, for a server on this machine."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, key: Ed25519PrivateKey | None = None) -> None:
        self.host, self.port, self.traffic = host, port, ConnectionFigures()
        self._tls, self._signer = tls, None if key is None else Signer(key)
        self._connection: http.client.HTTPConnection | None = None

    def call(
        self, method: str, target: str, body: bytes = b"", seconds: float = _SECONDS, longest: int = _LONGEST
    ) -> bytes:
        """One call; empty where the server has nothing to say. A connection that it closed is opened anew, once."""
        again = self._connection is not None
        try:
            return self._request(method, target, body, seconds, longest)
        except Broken:
            if not again:
                raise
            return self._request(method, target, body, seconds, longest)

    def ask(self, method: str, target: str, body: bytes = b"", longest: int = _LONGEST, remedy: str = "") -> bytes:
        """One call by a person, who is told in words why nothing came of it."""
        where = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        try:
            return self._in_turn(method, target, body, longest)
        except Rejected as error:
            raise UserError(f"{where}: {error}", remedy) from None
        except NoAnswer as error:
            raise UserError(
                f"{where} doesn't answer: {error}", "check the network, and that the server is up"
            ) from None
        finally:
            self.close()

    def _in_turn(self, method: str, target: str, body: bytes, longest: int) -> bytes:
        end = time.monotonic() + _TURN
        while True:
            try:
                return self.call(method, target, body, 30.0, longest)
            except TooMany:
                if time.monotonic() > end:
                    raise
            time.sleep(_PAUSE * random.uniform(0.5, 1.5))

    def _request(self, method: str, target: str, body: bytes, seconds: float, longest: int) -> bytes:
        headers = self._signer.headers(method, target, body) if self._signer else {}
        try:
            if self._connection is None:
                self._connection = self._connect(seconds)
            if self._connection.sock is not None:
                self._connection.sock.settimeout(seconds)
            self._connection.request(method, target, body, headers)
            reply = self._connection.getresponse()
            content = reply.read(longest + 1)
            self.traffic.up, self.traffic.down = self.traffic.up + len(body), self.traffic.down + len(content)
            self.traffic.last = time.time()
            if reply.will_close or len(content) > longest:
                self.close()
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise self._mistrusted(error) from None
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Broken(str(error) or type(error).__name__) from None
        if reply.status >= 500 or reply.status in (408, _TOO_MANY):
            kind = {_TOO_MANY: TooMany, _TIMED_OUT: CutOff}.get(reply.status, NoAnswer)
            raise kind(f"the server answered {reply.status} ({_reason(content)})")
        if len(content) > longest:
            raise Rejected(reply.status, f"an answer of more than {longest} bytes")
        if reply.status not in (200, 204):
            raise Rejected(reply.status, _reason(content))
        return content

    def _mistrusted(self, error: ssl.SSLCertVerificationError) -> Exception:
        """What to do about a certificate: one whose time is over is renewed one day, and nodes should be there then."""
        where = f"{self.host}:{self.port}"
        if error.verify_code in (_NOT_YET, _EXPIRED):
            return NoAnswer(f"{error.verify_message}; the operator must renew it, or this machine's clock is wrong")
        if error.verify_code in _OTHER_NAMES:
            remedy = "take the name that the operator gave; or the operator adds this one: `server renew --name`"
            return UserError(f"the certificate of {where} is not for {self.host}", remedy)
        problem = f"the certificate of {where} is not signed by the authority in --ca ({error.verify_message})"
        return UserError(problem, f"if the operator has changed the authority, {_NEW_CA}")

    def _connect(self, seconds: float) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._tls is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        else:
            connection = http.client.HTTPSConnection(self.host, self.port, timeout=seconds, context=self._tls)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None and isinstance(connection.sock, ssl.SSLSocket):
            ends = {"server": _expiry(connection.sock.getpeercert())}
            ends["authority"] = min((_expiry(one) for one in self._tls.get_ca_certs()), default=0.0)
            self.traffic.certificates = ends
        return connection

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
            self._connection = None


def _expiry(certificate: Any) -> float:
    """When a certificate expires, in seconds since 1970; 0 where it isn't known."""
    return float(ssl.cert_time_to_seconds(certificate["notAfter"])) if certificate else 0.0


def _reason(content: bytes) -> str:
    """The server's reason; it goes to a terminal, so it is kept short."""
    return one_line(content[:200].decode("utf-8", "replace"))
