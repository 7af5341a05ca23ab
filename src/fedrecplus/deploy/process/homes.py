"""The home folder of a server, how its Flower process is started, and Flower's own command."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from ssl import create_default_context
from typing import Any

from fedrecplus.deploy.light import NODE_PUBLIC
from fedrecplus.deploy.process import processes
from fedrecplus.errors import UserError
from fedrecplus.files import write_json, write_text

_CONNECTION, _SETTINGS = "fedrecplus", "server.json"


@dataclass(frozen=True)
class ServerHome:
    """A folder with all that a server keeps: certificates, Flower's database, and how it was started."""

    path: Path
    host: str = "127.0.0.1"
    port: int = 9092
    insecure: bool = False

    @classmethod
    def load(cls, path: Path) -> ServerHome:
        """The server that ``prepare`` made ready here."""
        processes.require_flower()
        try:
            return cls(path, **json.loads((path / _SETTINGS).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise UserError(f"{path} is no server's home", "start one with `fedrecplus server up`") from None

    @property
    def certificates(self) -> Path:
        """The folder of certificates; nodes need its ``ca.crt`` alone."""
        return self.path / "certificates"

    def prepare(self, names: list[str]) -> None:
        """Make certificates on first use, and note how to reach the server."""
        processes.require_flower()
        if self.insecure and not processes.is_loopback(self.host):
            remedy = "leave --insecure away, or listen on 127.0.0.1"
            raise UserError(f"--insecure on {self.host} would let everybody read and write", remedy)
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path.chmod(0o700)
        if not self.insecure:
            from fedrecplus.deploy.process.certificates import make_server_certificates

            make_server_certificates(self.certificates, names)
        facts = {"host": self.host, "port": self.port, "insecure": self.insecure}
        write_json(self.path / _SETTINGS, facts)
        ca = json.dumps(str(self.certificates / processes.CA))
        root = "insecure = true" if self.insecure else f"root-certificates = {ca}"
        write_text(
            Path(self.environment()["FLWR_HOME"]) / "config.toml",
            f'[superlink]\ndefault = "{_CONNECTION}"\n\n[superlink.{_CONNECTION}]\n'
            f'address = "127.0.0.1:{self.port}"\n{root}\n',
        )

    def environment(self) -> dict[str, str]:
        """For the SuperLink and Flower's command."""
        return processes.flower_environment(self.path.absolute())

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
            "--database", str(self.path.absolute() / "superlink.db"), "--disable-runtime-dependency-installation",
            *safety,
        ]  # fmt: skip

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
        context = None if self.insecure else create_default_context(cafile=str(self.certificates / processes.CA))
        address = f"http{'' if self.insecure else 's'}://127.0.0.1:{self.port}/health"
        try:
            with urllib.request.urlopen(address, timeout=3, context=context) as reply:
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

    def admit(self, public_key: Path) -> int | None:
        """Let the node with this key connect; returns its id, or None where it was let in before."""
        remedy = f"give the {NODE_PUBLIC} that `node key` made on the node"
        try:
            content = public_key.read_bytes()
        except OSError as error:
            raise UserError(f"{public_key}: {error.strerror}", remedy) from None
        if not content.startswith(b"ecdsa-sha2-nistp"):
            raise UserError(f"{public_key} is no node's public key", remedy)
        reply = self._flower("supernode", "register", str(public_key), but="Public key already in use")
        return int(reply["node-id"]) if "node-id" in reply else None

    def nodes(self) -> list[dict[str, str]]:
        """The nodes that were admitted, as Flower describes them."""
        return list(self._flower("supernode", "list")["nodes"])

    def expel(self, node: int) -> None:
        """Take a node's key off the list; it can't connect any more."""
        self._flower("supernode", "unregister", str(node))

    def submit(self, folder: Path) -> int:
        """Start the rounds of a run folder; returns Flower's id of the run."""
        override = f"folder={json.dumps(str(folder.absolute()))}"
        return int(self._flower("run", str(processes.FLOWER_APP), options=["--run-config", override])["run-id"])

    def run_status(self, run: int) -> str:
        """What Flower says of a run, such as ``running`` or ``finished:failed``."""
        return str(self._flower("list", options=["--run-id", str(run)])["runs"][0]["status"])

    def stop(self, run: int) -> None:
        """End a run."""
        self._flower("stop", str(run))

    def _flower(self, *arguments: str, options: Sequence[str] = (), but: str | None = None) -> dict[str, Any]:
        """Flower's command. A failure whose text has ``but`` in it is none, and returns nothing."""
        flwr = str(Path(sys.executable).parent / "flwr")
        command = [flwr, *arguments, _CONNECTION, *options, "--format", "json"]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False, timeout=120)
        try:
            reply: dict[str, Any] = json.loads(done.stdout[done.stdout.find("{") :])
        except json.JSONDecodeError:
            reply = {"success": False, "error-message": (done.stderr or done.stdout).strip()[-500:]}
        if not reply.get("success", False):
            why = str(reply.get("error-message", "no reason given"))
            if but is not None and but in why:
                return {}
            raise UserError(f"Flower's `{arguments[0]}` failed: {why}", "check that the server is up")
        return reply
