"""Who isn't let in: no certificate, another authority, an unregistered key, no TLS; and who may not start runs."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from ssl import SSLCertVerificationError, create_default_context

import pytest

from fedrecplus.deploy.process import CA, NodeHome, ServerHome, Supervised, running_server
from fedrecplus.deploy.process.certificates import make_server_certificates
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerHome]:
    with running_server(tmp_path_factory.mktemp("server"), print) as server:
        yield server


def _try(server: ServerHome, home: NodeHome, ca: Path, *, leave_out: str = "", insecure: bool = False) -> str:
    """Start a node as it is told to and wait for its end; returns what it said."""
    command = home.command(f"127.0.0.1:{server.port}", ca=ca, insecure=insecure)
    if leave_out:
        place = command.index(leave_out)
        del command[place : place + 2]
    command += ["--max-retries", "1", "--max-wait-time", "10"]
    log = home.path / "node.log"
    node = Supervised(command, home.environment(poll=0.2, share_error=False), log)
    node.start()
    assert node.process is not None
    try:
        assert node.process.wait(GIVE_UP) != 0, log.read_text()
    finally:
        node.end(1.0)
    return log.read_text()


def _online(server: ServerHome) -> list[str]:
    return [node["status"] for node in server.nodes() if node["status"] == "online"]


def test_a_node_without_the_authoritys_certificate_trusts_nobody(server: ServerHome, tmp_path: Path) -> None:
    home = NodeHome(tmp_path / "node")
    server.admit(home.make_key())
    said = _try(server, home, server.certificates / CA, leave_out="--root-certificates")
    assert "certificate" in said.lower()
    assert _online(server) == []


def test_a_node_with_a_wrong_authority_is_refused(server: ServerHome, tmp_path: Path) -> None:
    make_server_certificates(tmp_path / "other", [])
    home = NodeHome(tmp_path / "node")
    server.admit(home.make_key())
    said = _try(server, home, tmp_path / "other" / CA)
    assert "certificate" in said.lower()
    assert _online(server) == []


def test_an_unregistered_key_is_refused(server: ServerHome, tmp_path: Path) -> None:
    _try(server, NodeHome(tmp_path / "node"), server.certificates / CA)
    assert _online(server) == []


def test_a_node_without_a_key_is_refused(server: ServerHome, tmp_path: Path) -> None:
    _try(server, NodeHome(tmp_path / "node"), server.certificates / CA, leave_out="--auth-supernode-private-key")
    assert _online(server) == []


def test_a_node_without_tls_is_refused(server: ServerHome, tmp_path: Path) -> None:
    _try(server, NodeHome(tmp_path / "node"), server.certificates / CA, insecure=True)
    assert _online(server) == []


def test_a_browser_that_does_not_know_the_authority_is_refused(server: ServerHome) -> None:
    health, context = f"https://127.0.0.1:{server.port}/health", create_default_context()
    with pytest.raises(urllib.error.URLError) as error:
        urllib.request.urlopen(health, timeout=GIVE_UP, context=context)
    assert isinstance(error.value.reason, SSLCertVerificationError)


def test_an_admitted_node_with_the_right_authority_is_let_in(server: ServerHome, tmp_path: Path) -> None:
    home = NodeHome(tmp_path / "node")
    server.admit(home.make_key())
    command = home.command(f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False)
    node = Supervised(command, home.environment(poll=0.2, share_error=False), home.path / "node.log")
    node.start()
    try:
        end = time.monotonic() + GIVE_UP
        while not _online(server) and time.monotonic() < end:
            time.sleep(0.2)
        assert _online(server) == ["online"]
    finally:
        node.end()
