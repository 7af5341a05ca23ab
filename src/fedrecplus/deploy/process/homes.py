"""The home folder of a server, how its Flower process is started, and what its operator asks of it."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import Any

from fedrecplus.deploy.light import NODE_PUBLIC, split_address
from fedrecplus.deploy.process import processes
from fedrecplus.deploy.process.home_layout import LAYOUT, MODELS, bring_up_to_date, check_layout
from fedrecplus.deploy.process.joining import Invitation, fingerprint
from fedrecplus.deploy.process.private_files import check_private, make_secret
from fedrecplus.errors import UserError
from fedrecplus.files import locked, write_json
from fedrecplus.training.registry import Registry

SERVER_HOME = "FEDRECPLUS_SERVER_HOME"
_IN_MEMORY = ":flwr-in-memory:"
"""what Flower calls no database; uploads never get to the disk"""
_SETTINGS, _LAYOUT = "server.json", "layout"
_UP = "check that it is up, and that you are who started it"


@dataclass(frozen=True)
class ServerHome:
    """A folder with all that a server keeps: certificates, who was admitted, and how it was started."""

    path: Path
    host: str = "127.0.0.1"
    port: int = 9092
    insecure: bool = False
    name: str = ""
    """what nodes call it"""

    @classmethod
    def load(cls, path: Path) -> ServerHome:
        """The server that ``prepare`` made ready here."""
        processes.require_flower()
        try:
            facts = dict(json.loads((path / _SETTINGS).read_text(encoding="utf-8")))
            check_layout(path, int(facts.pop(_LAYOUT, 1)))
            return cls(path, **facts)
        except (OSError, ValueError, TypeError):
            raise UserError(f"{path} is no server's home", "start one with `fedrecplus server up`") from None

    @property
    def certificates(self) -> Path:
        """The folder of certificates; nodes need its ``ca.crt`` alone."""
        return self.path / "certificates"

    @property
    def registry(self) -> Registry:
        """Its published models; nodes that join get the current one."""
        return Registry(self.path / MODELS)

    def prepare(self, names: list[str]) -> None:
        """Make certificates on first use, and note how to reach the server. An earlier version's home is brought up."""
        processes.require_flower()
        if self.insecure and not processes.is_loopback(self.host):
            remedy = "leave --insecure away, or listen on 127.0.0.1"
            raise UserError(f"--insecure on {self.host} would let everybody read and write", remedy)
        layout = _noted_layout(self.path)
        check_layout(self.path, layout)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)
        bring_up_to_date(self.path, layout)
        if not self.insecure:
            from fedrecplus.deploy.process.certificates import make_server_certificates

            make_server_certificates(self.certificates, names)
        facts = {"host": self.host, "port": self.port, "insecure": self.insecure, "name": self.name, _LAYOUT: LAYOUT}
        write_json(self.path / _SETTINGS, facts)
        for name in ("control.token", "superexec.secret"):
            make_secret(self.path / name)
        check_private(*(self.certificates / name for name in ("ca.key", processes.SERVER_KEY)))

    def environment(self) -> dict[str, str]:
        """For the SuperLink."""
        home = self.path.absolute()
        return processes.flower_environment(home, **{SERVER_HOME: str(home)})

    def command(self) -> list[str]:
        """What starts the SuperLink."""
        safety = ["--insecure"]
        if not self.insecure:
            ca, certificate, key = (
                str(self.certificates.absolute() / name)
                for name in (processes.CA, processes.SERVER, processes.SERVER_KEY)
            )
            safety = ["--ssl-ca-certfile", ca, "--ssl-certfile", certificate, "--ssl-keyfile", key]
            safety += ["--enable-supernode-auth"]
        return [
            sys.executable, "-m", "fedrecplus.deploy.flower.superlink", "--host", self.host, "--port", str(self.port),
            "--database", _IN_MEMORY, "--disable-runtime-dependency-installation", *safety,
        ]  # fmt: skip

    def only_one(self) -> contextlib.AbstractContextManager[None]:
        """Hold the home's lock: two servers would write into one folder."""
        return locked(self.path / ".lock", f"{self.path} as its server", "stop it first, or give another --home")

    def check_port(self) -> None:
        """Refuse a port that somebody listens on, or that can't be had, before anything is started."""
        try:
            with socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((self.host, self.port))
        except OSError as error:
            why = f"{self.host}:{self.port}: {error.strerror}"
            raise UserError(why, "is a server up already? Else choose another --port") from None

    def is_up(self) -> bool:
        """Whether the SuperLink answers."""
        try:
            with urllib.request.urlopen(f"{self._base}/health", timeout=3, context=self._tls()) as reply:
                return bool(reply.status == 200)
        except OSError:  # of which urllib's errors are
            return False

    def wait_until_up(self, seconds: float = 180.0) -> None:
        """Wait for the SuperLink to answer."""
        end = time.monotonic() + seconds
        while not self.is_up():
            if time.monotonic() > end:
                raise UserError(f"the server on port {self.port} doesn't answer", "look into its log")
            time.sleep(0.2)

    def admit(self, public_key: Path, name: str = "", instead_of: int | None = None) -> tuple[int, bool]:
        """Let the node with this key connect; returns its number, and whether that is news.

        ``instead_of`` is a node's number: it has a new key, and stays who it is.
        """
        remedy = f"give the {NODE_PUBLIC} that `node key` made on the node"
        try:
            content = public_key.read_bytes()
        except OSError as error:
            raise UserError(f"{public_key}: {error.strerror}", remedy) from None
        if not content.startswith(b"ecdsa-sha2-nistp"):
            raise UserError(f"{public_key} is no node's public key", remedy)
        place = None if instead_of is None else str(instead_of)
        reply = self.ask("admit", key=content.decode("ascii", "replace"), name=name, instead_of=place)
        return int(reply["node-id"]), bool(reply["new"])

    def invite(self, name: str, hours: float, address: str = "") -> Invitation:
        """A link that lets one node in, once."""
        if self.insecure:
            raise UserError("a server without TLS has no keys to let in", "start it without --insecure")
        host, port = split_address(address) if address else (self.name or self.host, self.port)
        if host in ("0.0.0.0", "::"):
            raise UserError("the server has no name yet", "give --address HOST:PORT as nodes reach it")
        code = self.ask("invite", name=name, hours=hours)["code"]
        return Invitation(host, port, code, fingerprint((self.certificates / processes.CA).read_bytes()))

    def nodes(self) -> list[dict[str, str]]:
        """The nodes that were admitted, and who of them is here."""
        return list(self.ask("nodes")["nodes"])

    def expel(self, node: int) -> None:
        """Let a node connect no more; its key can be admitted again."""
        self.ask("expel", node=str(node))

    def submit(self, folder: Path) -> int:
        """Start the rounds of a run folder; returns Flower's id of the run."""
        return int(self.ask("start", folder=str(folder.absolute()))["run"])

    def run_status(self, run: int) -> str:
        """What Flower says of a run, such as ``running`` or ``finished:failed``."""
        return str(self.ask("status", run=str(run))["status"])

    def stop(self, run: int) -> None:
        """End a run."""
        self.ask("stop", run=str(run))

    def ask(self, call: str, **facts: Any) -> dict[str, Any]:
        """Ask the running server something that its operator alone may ask; the token says who that is."""
        token = self.path / "control.token"
        check_private(token)
        try:
            headers = {"Authorization": f"Bearer {token.read_text(encoding='ascii')}"}
        except OSError as error:
            raise UserError(f"{token}: {error.strerror}", _UP) from None
        address = f"{self._base}/v1/server/{call}"
        request = urllib.request.Request(address, json.dumps(facts).encode(), headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._tls()) as reply:
                said: dict[str, Any] = json.loads(reply.read())
        except (OSError, ValueError) as error:
            raise UserError(f"the server on port {self.port} doesn't answer: {error}", _UP) from None
        if "problem" in said:
            raise UserError(said["problem"], said["remedy"])
        return said

    @property
    def _base(self) -> str:
        return f"http{'' if self.insecure else 's'}://127.0.0.1:{self.port}"

    def _tls(self) -> SSLContext | None:
        return None if self.insecure else create_default_context(cafile=str(self.certificates / processes.CA))


def _noted_layout(home: Path) -> int:
    """Of a home; this version's where there is none yet."""
    try:
        return int(json.loads((home / _SETTINGS).read_text(encoding="utf-8")).get(_LAYOUT, 1))
    except FileNotFoundError:
        return LAYOUT
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{home / _SETTINGS}: {error}", "restore it from a backup, or delete it") from None
