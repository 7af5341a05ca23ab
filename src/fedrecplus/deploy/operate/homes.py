"""The home folder of a server: its certificates and tokens, how it was started, and where its database is."""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import socket
import ssl
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fedrecplus.deploy.node import Invitation, fingerprint, is_loopback, split_address
from fedrecplus.deploy.operate.certificates import CA, SERVER, SERVER_KEY, days_left, make_server_certificates
from fedrecplus.deploy.server import Database, StoredRun
from fedrecplus.deploy.server.published import PublishedModels
from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UserError
from fedrecplus.files import check_private, check_writable, locked, write_private

_SETTINGS, _LOCK, DATABASE, TOKEN = "server.json", "server.lock", "server.db", "metrics.token"

_ANY_TIME = ssl.VerifyFlags(0x200000)
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME"""
_STILL_ENDING, _LOOK = 8.0, 0.1
"""seconds that workers of a server that was killed may hold its port, and between looks"""


@dataclass(frozen=True)
class ServerHome:
    """A folder with what a server keeps beside its database."""

    path: Path
    host: str = "127.0.0.1"
    port: int = 9092
    insecure: bool = False
    name: str = ""
    """what nodes call it"""
    address: str = ""
    """of the database; empty: SQLite in this folder"""

    @classmethod
    def load(cls, path: Path) -> ServerHome:
        """The server that ``prepare`` made ready here."""
        try:
            home = cls(path, **json.loads((path / _SETTINGS).read_text(encoding="utf-8")))
            split_address(f"{home.host}:{home.port}")
            return home
        except OSError:
            raise UserError(f"{path} is no server's home", "start one with `fedrecplus server up`") from None
        except (ValueError, TypeError):
            remedy = "delete it, and start `fedrecplus server up` with the options that it had, --database among them"
            raise UserError(f"{path / _SETTINGS} is damaged", remedy) from None

    @property
    def certificates(self) -> Path:
        """The folder of certificates; nodes need its ``ca.crt`` alone."""
        return self.path / "certificates"

    @property
    def page(self) -> Path:
        """The folder of the page that invitations open; there is none where nobody wants it served."""
        return self.path / "page"

    @property
    def certificate_days(self) -> float:
        """Days until the certificate expires."""
        return days_left(self.certificates / SERVER)

    @cached_property
    def database(self) -> Database:
        """The server's database."""
        return Database(self.address or f"sqlite:///{self.path.absolute() / DATABASE}")

    @cached_property
    def roster(self) -> Roster:
        """Who may connect."""
        return Roster(self.database)

    @cached_property
    def models(self) -> PublishedModels:
        """What it has published; nodes that join get the current one."""
        return PublishedModels(self.database)

    def prepare(self, names: list[str]) -> None:
        """Make certificates and tables on first use, and note how to reach the server."""
        if self.insecure and not is_loopback(self.host):
            remedy = "leave --insecure out, or listen on 127.0.0.1 behind a proxy that has TLS"
            raise UserError(f"--insecure on {self.host} would let everybody read", remedy)
        if not self.address and (self.path / _SETTINGS).exists() and (other := ServerHome.load(self.path)).address:
            raise UserError(
                f"{self.path} is a server with another database, {other.database}",
                "give it by --database, or another --home",
            )
        check_writable(self.path)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)
        make_server_certificates(self.certificates, names)
        if not (self.path / TOKEN).exists():
            write_private(self.path / TOKEN, secrets.token_hex(32).encode())
        check_private(self.path / TOKEN, *(self.certificates / name for name in ("ca.key", SERVER_KEY)))
        self.database.check()
        self.database.upgrade()
        facts = {"host": self.host, "port": self.port, "insecure": self.insecure, "name": self.name}
        settings = {**facts, "address": self.address}  # which may have a password
        write_private(self.path / _SETTINGS, f"{json.dumps(settings, indent=2)}\n".encode())
        if self.database.is_sqlite:
            for suffix in ("", "-wal", "-shm"):
                if (file := self.path / f"{DATABASE}{suffix}").exists():
                    file.chmod(0o600)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Refuse a second server in this folder: each would say in it that nodes are to come to its own port."""
        with locked(self.path / _LOCK, f"the server in {self.path}", "stop that one first, or give another --home"):
            yield

    @property
    def authority(self) -> bytes:
        """The certificate that links name."""
        return (self.certificates / CA).read_bytes()

    def invite(self, name: str, hours: float, address: str = "") -> Invitation:
        """A link that lets one node in, once."""
        host, port = split_address(address) if address else (self.name or self.host, self.port)
        if host in ("0.0.0.0", "::"):
            raise UserError("the server has no name yet", "give --address HOST:PORT as nodes reach it")
        run = StoredRun.newest(self.database)
        task = "" if run is None else Task.parse(run.deployment.task).digest
        return Invitation(host, port, self.roster.invite(name, 3600.0 * hours), fingerprint(self.authority), task)

    def listening(self) -> socket.socket:
        """The socket that workers share; an error in words where it can't be had."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        end = time.monotonic() + _STILL_ENDING
        while True:
            listener = socket.socket(family)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((self.host, self.port))
                listener.listen(4096)
            except OSError as error:
                listener.close()
                if error.errno == errno.EADDRINUSE and time.monotonic() < end:
                    time.sleep(_LOOK)
                    continue
                taken = "is a server up already? Else choose another --port"
                remedy = taken if error.errno == errno.EADDRINUSE else "give a --host and --port that this machine has"
                raise UserError(f"{self.host}:{self.port}: {error.strerror}", remedy) from None
            return listener

    def is_up(self) -> bool:
        """Whether a worker answers, and reaches the database.

        It is asked for by where it listens; certificates may name what nodes call it alone, and have expired.
        """
        scheme, host = ("http" if self.insecure else "https"), self.host
        host = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        tls = None if self.insecure else ssl.create_default_context(cafile=str(self.certificates / CA))
        if tls is not None:
            tls.check_hostname = False
            tls.verify_flags |= _ANY_TIME
        try:
            with urllib.request.urlopen(f"{scheme}://{host}:{self.port}/healthz", timeout=5, context=tls) as reply:
                return bool(reply.status == 200)
        except OSError:  # of which urllib's errors are
            return False
