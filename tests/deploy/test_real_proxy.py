"""The nginx of `operations/nginx.conf` before a worker: TLS, signatures, long polls, limits, and V from its cache."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.node import ServerConnection, trust
from fedrecplus.deploy.node.connection import NoAnswer, Rejected
from fedrecplus.deploy.operate.processes import server_port
from fedrecplus.deploy.server import Lease
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.questions import object_digest
from tests.deploy.in_process import database_of, prepared, small_config, stored
from tests.deploy.running import Running
from tests.small_data import small_ratings
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

USER = "user root;\n" if os.geteuid() == 0 else ""
FILE = Path(__file__).parents[2] / "operations" / "nginx.conf"


@contextlib.contextmanager
def proxy(folder: Path, server: Running) -> Iterator[int]:
    """The file as it is, with other ports and places; returns the port."""
    (folder / "tmp").mkdir(parents=True)
    port = server_port()
    text = FILE.read_text()
    for before, after in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "127.0.0.1:9092": f"127.0.0.1:{server.home.port}",
        "/var/lib/fedrecplus/server": str(server.home.path),
        "/var/cache/nginx/fedrecplus": str(folder / "cache"),
    }.items():
        assert before in text
        text = text.replace(before, after)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/tmp/{kind};\n" for kind in kinds)
    main = f"{USER}daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
    (folder / "nginx.conf").write_text(f"{main}http {{\naccess_log off;\n{places}{text}\n}}\n")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([program, "-c", str(folder / "nginx.conf"), "-p", str(folder)])
    try:
        wait_until(lambda: _answers(port, server), 30.0)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _answers(port: int, server: Running) -> bool:
    with (
        contextlib.suppress(NoAnswer),
        contextlib.closing(ServerConnection("127.0.0.1", port, trust(server.ca))) as connection,
    ):
        return connection.call("GET", "/healthz") == b"ok"
    return False


def test_devices_speak_through_a_proxy_that_bounds_strangers_and_keeps_tables(tmp_path: Path) -> None:
    prepared(tmp_path, small_ratings(), small_config(), nodes=1)
    with (
        Running(tmp_path / "server", database_of(tmp_path / "run").address, insecure=True) as server,
        proxy(tmp_path / "nginx", server) as port,
    ):
        link = str(server.home.invite("anna", 1.0, f"127.0.0.1:{port}"))
        assert exit_code_of(["join", link, "--leave", "--home", str(tmp_path / "anna")]) == 0
        number, key = server.admitted()
        device = ServerConnection("127.0.0.1", port, trust(server.ca), key)
        began = time.monotonic()
        assert device.call("GET", "/v1/work?wait=3") == b"", "a poll is held through it"
        assert time.monotonic() - began > 2.5
        lease = Lease(server.home.database, 1e6)
        assert lease.take()
        coordinator = DatabaseLink(CoordinatedRun(lease, stored(tmp_path / "run").number))
        coordinator.ask({number: Packet({"round": 0}, {"V": np.arange(4000.0)})}, 60.0)
        assert device.call("GET", "/v1/work?wait=5")
        (digest,) = re.findall(rb"[0-9a-f]{64}", device.call("GET", "/v1/work?wait=5"))
        hits = [_object(port, server, digest.decode()) for _ in range(3)]
        assert [cache for cache, _ in hits] == ["MISS", "HIT", "HIT"]
        assert {object_digest(content) for _, content in hits} == {digest.decode()}
        with pytest.raises(Rejected, match="413"):
            device.call("POST", "/v1/work/5", bytes(32 * 2**20))
        with pytest.raises(Rejected, match="404"):
            device.call("POST", "/v1/work/5", b"a body, as it was signed")
        device.close()


def _object(port: int, server: Running, digest: str) -> tuple[str, bytes]:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust(server.ca), timeout=20)
    connection.request("GET", f"/v1/objects/{digest}")
    reply = connection.getresponse()
    content = reply.read()
    connection.close()
    return str(reply.getheader("X-Cache")), content
