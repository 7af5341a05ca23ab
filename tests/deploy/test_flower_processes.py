"""What we change in Flower's processes, without starting them."""

from __future__ import annotations

import socket
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cryptography import x509

from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.light import make_node_key, prepare
from fedrecplus.deploy.process import (
    CA,
    ServerHome,
    free_port,
)
from fedrecplus.deploy.process.certificates import make_server_certificates
from fedrecplus.deploy.process.processes import flower_environment, server_port
from fedrecplus.deploy.server import process_began
from fedrecplus.errors import UserError
from tests.waiting import GIVE_UP


def test_certificates_are_made_once_and_hold_together(tmp_path: Path) -> None:
    make_server_certificates(tmp_path, ["fed.example.org", "192.0.2.7"])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    make_server_certificates(tmp_path, ["fed.example.org"])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    authority = x509.load_pem_x509_certificate(before[CA])
    server = x509.load_pem_x509_certificate(before["server.crt"])
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "fed.example.org"} == set(names.get_values_for_type(x509.DNSName))
    context = ssl.create_default_context(cafile=str(tmp_path / CA))
    assert context.verify_mode == ssl.CERT_REQUIRED
    public = make_node_key(tmp_path).read_bytes()
    assert public.startswith(b"ecdsa-sha2-nistp384 ")
    assert make_node_key(tmp_path).read_bytes() == public, "a node has one key"
    for name in ("server.key", "ca.key", "node.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_name_that_comes_later_gets_a_certificate_by_the_same_authority(tmp_path: Path) -> None:
    make_server_certificates(tmp_path, ["fed.example.org"])
    authority = (tmp_path / CA).read_bytes()
    make_server_certificates(tmp_path, ["other.example.org"])
    assert (tmp_path / CA).read_bytes() == authority, "nodes keep their ca.crt"
    server = x509.load_pem_x509_certificate((tmp_path / "server.crt").read_bytes())
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"fed.example.org", "other.example.org"} <= set(names.get_values_for_type(x509.DNSName))
    server.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    (tmp_path / "ca.key").unlink()
    with pytest.raises(UserError, match=r"ca\.key is missing"):
        make_server_certificates(tmp_path, ["third.example.org"])


def test_flower_sends_no_telemetry_and_writes_into_its_home(tmp_path: Path) -> None:
    environment = flower_environment(tmp_path)
    assert environment["FLWR_TELEMETRY_ENABLED"] == "0"
    assert environment["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert environment["FLWR_HOME"] == str(tmp_path / "flower")


def test_insecure_is_for_loopback_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="would let everybody"):
        ServerHome(tmp_path, "0.0.0.0", 9092, insecure=True).prepare([])
    Store.create(tmp_path / "store.db", Scale(1.0, 5.0, 1.0))
    with pytest.raises(UserError, match="in the clear"):
        prepare(tmp_path, "fed.example.org:9092", None, insecure=True)
    with pytest.raises(UserError, match="in the clear"):
        prepare(tmp_path, "127.evil.example:9092", None, insecure=True)
    with pytest.raises(UserError, match=r"ca\.crt is needed"):
        prepare(tmp_path, "fed.example.org:9092", None, insecure=False)


def test_a_port_that_is_taken_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=r"in use(.|\n)*--port"):
            ServerHome(tmp_path, "127.0.0.1", taken.getsockname()[1]).check_port()
    ServerHome(tmp_path, "127.0.0.1", free_port()).check_port()


def test_while_a_server_is_down_nobody_is_dealt_its_port() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    ports = {server_port() for _ in range(50)}
    assert len(ports) > 1
    assert not any(first <= port <= last for port in ports)


def test_only_a_nodes_public_key_can_be_admitted(tmp_path: Path) -> None:
    server = ServerHome(tmp_path)
    with pytest.raises(UserError, match="No such file"):
        server.admit(tmp_path / "nobody.pub")
    make_node_key(tmp_path)
    with pytest.raises(UserError, match="no node's public key"):
        server.admit(tmp_path / "node.key")


def test_nothing_stays_behind_when_whoever_started_it_is_killed(tmp_path: Path) -> None:
    child = (
        "import os, sys, time; from pathlib import Path; from fedrecplus.deploy.process import end_with_parent\n"
        "end_with_parent(); Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)\n"
    )
    starter = (
        "import os, sys; from fedrecplus.deploy.process import Supervised\n"
        "Supervised([sys.executable, '-c', sys.argv[1], sys.argv[2]], dict(os.environ), None).keep_alive()\n"
    )
    note = tmp_path / "pid"
    process = subprocess.Popen([sys.executable, "-c", starter, child, str(note)])
    while not note.exists() or not note.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    end = time.monotonic() + GIVE_UP
    while _is_running(int(note.read_text())):
        assert time.monotonic() < end, "an orphan lives on"
        time.sleep(0.1)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_devices_and_nodes_need_no_flower(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['flwr'] = None; from fedrecplus.cli.main import exit_code_of\n"
        "assert exit_code_of(['device', 'init', '--home', sys.argv[1]]) == 0\n"
        "assert exit_code_of(['device', 'status', '--home', sys.argv[1]]) == 0\n"
        "assert exit_code_of(['node', 'key', '--home', sys.argv[1]]) == 0\n"
        "import fedrecplus.deploy.light\n"
        "sys.exit(exit_code_of(['server', 'up', '--home', sys.argv[1]]))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "me")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIVE_UP)
    assert done.returncode == 2, done.stderr
    assert "pip install 'fedrecplus[deploy]'" in done.stderr


def test_the_helper_ends_with_its_server_even_where_nobody_has_waited_for_that(tmp_path: Path) -> None:
    """Whoever is killed keeps its number until it is waited for, which Flower's own watch takes for life."""
    server = (
        "import os, subprocess, sys, time\n"
        "with open(sys.argv[1], 'wb') as log:\n"
        "    helper = subprocess.Popen([sys.executable, '-m', 'fedrecplus.deploy.flower.superexec', '--insecure',\n"
        "        '--runtime-api-address', '127.0.0.1:' + sys.argv[2], '--parent-pid', str(os.getpid())],\n"
        "        stdout=log, stderr=log)\n"
        "print(helper.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    log = tmp_path / "helper.log"
    command = [sys.executable, "-c", server, str(log), str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=flower_environment(tmp_path))
    assert process.stdout is not None
    helper, end = int(process.stdout.readline()), time.monotonic() + GIVE_UP
    try:
        while "SuperExec" not in log.read_text():
            assert _is_running(helper), log.read_text()
            assert time.monotonic() < end, "it never began"
            time.sleep(0.1)
        process.kill()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.05)
        while _is_running(helper):
            assert time.monotonic() < end, "an orphan lives on"
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_process_is_told_from_a_later_one_of_its_number() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process_began(process.pid) == process_began(process.pid) != process_began(1)
    process.communicate(b"\n")
    assert process_began(process.pid) is None
