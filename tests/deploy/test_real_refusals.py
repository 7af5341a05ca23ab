"""Who isn't let in: no certificate, another authority, an unregistered key, no TLS; and who may not start runs."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from ssl import SSLCertVerificationError, create_default_context

import pytest
from fedrecplus.deploy.process import CA, NodeHome, ServerHome, Supervised, running_server
from fedrecplus.deploy.process.certificates import make_server_certificates

from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerHome]:
    with running_server(tmp_path_factory.mktemp("server"), print) as server:
        yield server


def _try(server: ServerHome, home: NodeHome, ca: Path | None, until: str, *, insecure: bool = False) -> int | None:
    """Start a node as it is told to and wait until it says something; returns how it ended, or None if it tries on."""
    command = home.command(f"127.0.0.1:{server.port}", ca=ca, insecure=insecure)
    log = home.path / "node.log"
    node = Supervised(command, dict(os.environ), log)
    node.start()
    assert node.process is not None
    end = time.monotonic() + GIVE_UP
    try:
        while until not in log.read_text():
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        assert _online(server) == []
        return node.process.poll()
    finally:
        node.end(5.0)


def _home(server: ServerHome, folder: Path, *, admitted: bool = True) -> NodeHome:
    home = NodeHome(folder / "node")
    Store.create(home.store, Scale(1.0, 5.0, 1.0))
    if admitted:
        server.admit(home.make_key())
    return home


def _online(server: ServerHome) -> list[str]:
    return [node["status"] for node in server.nodes() if node["status"] == "online"]


def test_a_node_without_the_authoritys_certificate_trusts_nobody(server: ServerHome, tmp_path: Path) -> None:
    _try(server, _home(server, tmp_path), None, "ca.crt is needed")


def test_a_node_whose_authority_was_rotated_ends_and_says_what_to_do(server: ServerHome, tmp_path: Path) -> None:
    make_server_certificates(tmp_path / "other", [])
    home = _home(server, tmp_path)
    _try(server, home, tmp_path / "other" / CA, "get the server's ca.crt anew")
    command = home.command(f"127.0.0.1:{server.port}", ca=tmp_path / "other" / CA, insecure=False)
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP, check=False)
    assert done.returncode == 2, "it ends, where Flower's node hangs"
    assert "not signed by the authority" in done.stderr


def test_an_unregistered_key_is_refused_until_it_is_admitted(server: ServerHome, tmp_path: Path) -> None:
    home = _home(server, tmp_path, admitted=False)
    assert _try(server, home, server.certificates / CA, "the operator must admit") is None, "it waits to be admitted"


def test_a_node_without_tls_is_refused(server: ServerHome, tmp_path: Path) -> None:
    _try(server, _home(server, tmp_path), None, "doesn't answer", insecure=True)


def test_a_browser_that_does_not_know_the_authority_is_refused(server: ServerHome) -> None:
    health, context = f"https://127.0.0.1:{server.port}/health", create_default_context()
    with pytest.raises(urllib.error.URLError) as error:
        urllib.request.urlopen(health, timeout=GIVE_UP, context=context)
    assert isinstance(error.value.reason, SSLCertVerificationError)


def test_an_admitted_node_with_the_right_authority_is_let_in(server: ServerHome, tmp_path: Path) -> None:
    home = _home(server, tmp_path)
    command = home.command(f"127.0.0.1:{server.port}", ca=server.certificates / CA, insecure=False)
    node = Supervised(command, dict(os.environ), home.path / "node.log")
    node.start()
    try:
        end = time.monotonic() + GIVE_UP
        while not _online(server) and time.monotonic() < end:
            time.sleep(0.2)
        assert _online(server) == ["online"]
    finally:
        node.end()
