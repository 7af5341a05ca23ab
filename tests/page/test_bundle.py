"""The page of a server as files: hashes that anybody can check, and a policy that names one server."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.errors import UserError
from fedrecplus.web.page.bundle import SUMS, bundle_files, write_bundle


def test_a_bundle_speaks_to_one_server_and_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["server", "bundle", str(tmp_path / "public"), "--address", "https://fed.example.org:9092/"]
    assert exit_code_of(command) == 0
    sums = (tmp_path / "public" / SUMS).read_bytes()
    assert hashlib.sha256(sums).hexdigest() in capsys.readouterr().out
    named = dict(reversed(line.split("  ")) for line in sums.decode().splitlines())
    assert named == {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (tmp_path / "public").iterdir()
        if file.name != SUMS
    }
    page = (tmp_path / "public" / "index.html").read_text()
    assert "connect-src 'self' https://fed.example.org:9092;" in page
    assert 'data-server="https://fed.example.org:9092"' in page
    assert write_bundle(tmp_path / "public", "https://fed.example.org:9092") == hashlib.sha256(sums).hexdigest()


def test_the_servers_own_page_speaks_to_its_origin_alone() -> None:
    page = bundle_files()["index.html"].decode()
    assert 'data-server=""' in page
    assert "connect-src 'self';" in page


@pytest.mark.parametrize("server", ["fed.example.org", "https://a b", 'https://a"', "https://a/path", "file:///x"])
def test_what_is_no_origin_is_refused(server: str) -> None:
    with pytest.raises(UserError, match="no server"):
        bundle_files(server)
