"""Who is let in, and what happens to those who send too much, too often or too slowly."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fedrecplus.training import Recommender
from fedrecplus.web.service import Limits, ServiceOptions
from tests.service.running import in_thread
from tests.waiting import GIVE_UP, wait_until

TIGHT = replace(Limits(), rate=0.0, body=2000)
IMPATIENT = replace(TIGHT, header_seconds=0.4, request_seconds=0.6, idle_seconds=1, connections=8)
"""of time, too: on a busy machine it lets an honest peer go"""
OTHER = "https://films.example"


@pytest.fixture(scope="module")
def place(run: Path) -> Iterator[tuple[str, int]]:
    with in_thread(run, ServiceOptions(limits=TIGHT)) as started:
        yield started


@pytest.fixture(scope="module")
def impatient(run: Path) -> Iterator[tuple[str, int]]:
    with in_thread(run, ServiceOptions(limits=IMPATIENT)) as started:
        yield started


def ask(place: tuple[str, int], method: str = "GET", path: str = "/health", **more) -> httpx.Response:
    address = f"http://{place[0]}:{place[1]}{path}"
    return httpx.request(method, address, timeout=GIVE_UP, trust_env=False, verify=False, **more)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "127.0.0.1/", "a b"])
def test_requests_for_other_names_are_refused(place: tuple[str, int], host: str) -> None:
    """A page elsewhere whose name points to this machine is still that page (DNS rebinding)."""
    answer = ask(place, headers={"host": host})
    assert answer.status_code == 421
    assert "digest" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "[::1]:1", "127.0.0.1"])
def test_requests_for_its_own_names_are_answered(place: tuple[str, int], host: str) -> None:
    assert ask(place, headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", [OTHER, "null", "http://127.0.0.1:1", "http://evil.example@127.0.0.1"])
def test_pages_from_elsewhere_are_not_let_in(place: tuple[str, int], origin: str) -> None:
    answer = ask(place, "POST", "/recommend", json={"ratings": {}}, headers={"origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    asked = {"origin": origin, "access-control-request-method": "POST"}
    assert ask(place, "OPTIONS", "/recommend", headers=asked).status_code == 403


def test_its_own_page_is_let_in(place: tuple[str, int]) -> None:
    origin = f"http://{place[0]}:{place[1]}"
    assert ask(place, "POST", "/recommend", json={"ratings": {}}, headers={"origin": origin}).status_code == 200


def test_an_origin_that_is_allowed_may_ask_and_no_other(run: Path) -> None:
    with in_thread(run, ServiceOptions(origins=[OTHER], limits=TIGHT)) as place:
        answer = ask(place, "POST", "/recommend", json={"ratings": {}}, headers={"origin": OTHER})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, OTHER)
        assert "access-control-allow-credentials" not in answer.headers
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        assert ask(place, "OPTIONS", "/recommend", headers={"origin": OTHER, **asked}).status_code == 200
        assert ask(place, headers={"origin": "https://evil.example"}).status_code == 403


def test_a_body_beyond_the_bound_is_not_read(place: tuple[str, int]) -> None:
    large = json.dumps({"ratings": {str(n): 5 for n in range(500)}}).encode()
    kind = {"content-type": "application/json"}
    for content in (large, iter([large[:1500], large[1500:]])):  # with its length, and in chunks without one
        answer = ask(place, "POST", "/recommend", content=content, headers=kind)
        assert answer.status_code == 413
        assert answer.headers["connection"] == "close"


def test_a_peer_that_asks_too_often_has_to_wait(run: Path) -> None:
    limits = replace(TIGHT, rate=0.001, burst=3.0)
    with in_thread(run, ServiceOptions(limits=limits)) as place:
        statuses = [ask(place, path="/items").status_code for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert int(ask(place, path="/items").headers["retry-after"]) >= 1
        assert ask(place, path="/health").status_code == 200, "monitors are answered"


@pytest.mark.parametrize(("behind_proxy", "statuses"), [(True, [200, 200, 429]), (False, [200, 429, 429])])
def test_a_forwarded_address_counts_only_behind_a_proxy(run: Path, behind_proxy: bool, statuses: list[int]) -> None:
    """Else every peer could call itself another one with each request."""
    limits = replace(TIGHT, rate=0.001, burst=1.0)
    with in_thread(run, ServiceOptions(limits=limits), behind_proxy=behind_proxy) as place:
        peers = ("192.0.2.1", "192.0.2.2", "192.0.2.1")
        assert [ask(place, path="/items", headers={"x-forwarded-for": each}).status_code for each in peers] == statuses


def test_a_fault_tells_nothing_of_what_was_sent(
    run: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither to the log nor to the peer: an error's text might quote a rating."""

    def fails(*_: object) -> None:
        raise ValueError("rating 31337 of item sesame")

    with in_thread(run, ServiceOptions(limits=TIGHT)) as place:
        monkeypatch.setattr(Recommender, "fold_in", fails)
        answer = ask(place, "POST", "/recommend", json={"ratings": {"3": 5}})
        monkeypatch.undo()
        assert ask(place, "POST", "/recommend", json={"ratings": {"3": 5}}).status_code == 200
    assert answer.status_code == 500
    assert "a request failed: ValueError at test_bounds.py" in caplog.text
    assert not [text for text in ("31337", "sesame") if text in caplog.text + answer.text]


def test_reasons_cost_as_much_as_several_requests(run: Path) -> None:
    limits = replace(TIGHT, rate=0.001, burst=3.0)
    with in_thread(run, ServiceOptions(limits=limits)) as place:
        wanted = {"ratings": {str(n): 3 for n in range(25)}, "why": True}
        assert ask(place, "POST", "/recommend", json=wanted).status_code == 429
        assert ask(place, "POST", "/recommend", json={**wanted, "why": False}).status_code == 200


def kept_for(place: tuple[str, int], *sent: bytes) -> float:
    """Seconds until a peer that sends a part and then nothing is let go, however long a busy machine takes to it."""
    began = time.monotonic()
    with socket.create_connection(place, timeout=GIVE_UP) as opened:
        for part in sent:
            opened.sendall(part)
        with contextlib.suppress(ConnectionResetError):
            while opened.recv(1000):
                pass
        return time.monotonic() - began


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (b"GET /health HTT",),
        (b"POST /recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",),
        (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea",),
    ],
    ids=["silent", "half a header", "half a body", "idle", "half a second header"],
)
def test_slow_requests_are_closed(impatient: tuple[str, int], sent: tuple[bytes, ...]) -> None:
    assert kept_for(impatient, *sent) > 0.3


def is_refused(opened: socket.socket, part: bytes) -> bool:
    try:
        opened.sendall(part)
    except OSError:
        return True
    return False


def test_a_trickle_doesn_t_keep_a_connection_open(impatient: tuple[str, int]) -> None:
    """One byte at a time, each well before a deadline that every byte would put off."""
    with socket.create_connection(impatient, timeout=GIVE_UP) as opened:
        opened.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
        wait_until(lambda: is_refused(opened, b"a"))


def test_a_peer_that_doesn_t_read_its_answers_is_let_go(impatient: tuple[str, int]) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(impatient, timeout=GIVE_UP) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while not is_refused(opened, request):
            pass


def test_open_connections_are_bounded_and_come_back(impatient: tuple[str, int]) -> None:
    opened = [socket.create_connection(impatient, timeout=GIVE_UP) for _ in range(30)]
    try:
        wait_until(lambda: ask_or_none(impatient) == 200)
    finally:
        for each in opened:
            each.close()


def ask_or_none(place: tuple[str, int]) -> int | None:
    try:
        return ask(place).status_code
    except httpx.TransportError:
        return None
