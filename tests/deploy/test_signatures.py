"""Signatures of requests: the quick way says yes to nothing that the library doesn't."""

from __future__ import annotations

import random
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.deploy.wire import signatures
from fedrecplus.deploy.wire.signatures import Signer, Unsigned, verify

TARGET = "/v1/work?wait=50.0&after=3"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def by_library(monkeypatch: pytest.MonkeyPatch, method: str, target: str, headers: dict[str, str]) -> str:
    with monkeypatch.context() as patched:
        patched.setattr(signatures, "_verified_quickly", lambda *_: None)
        return said(method, target, headers)


def said(method: str, target: str, headers: dict[str, str]) -> str:
    try:
        return verify(method, target, headers).key
    except Unsigned:
        return "nobody"


@pytest.mark.parametrize(("method", "target"), [("GET", TARGET), ("POST", "/v1/work/17"), ("DELETE", "/v1/work")])
def test_what_nodes_send_is_verified_quickly(method: str, target: str) -> None:
    headers = Signer(KEY).headers(method, target, b"body")
    verified = signatures._verified_quickly(method, target, headers)
    assert verified is not None
    assert verified.key == KEY.public_key().public_bytes_raw().hex()
    verified.check_body(b"body")
    with pytest.raises(Unsigned):
        verified.check_body(b"another body")


def test_a_changed_request_is_nobodys_whoever_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    headers = Signer(KEY).headers("GET", TARGET, b"")
    assert said("GET", TARGET, headers) == by_library(monkeypatch, "GET", TARGET, headers) != "nobody"
    for _ in range(1500):
        request = {**headers, "method": "GET", "target": TARGET}
        field = draw.choice(sorted(request))
        place, mark = draw.randrange(len(request[field])), draw.choice('abcXYZ019+/=:;,"()@&?%#~ \t')
        how = draw.choice([request[field][place + 1 :], request[field][place:], ""])
        request[field] = request[field][:place] + mark + how
        method, target = request.pop("method"), request.pop("target")
        assert said(method, target, request) == by_library(monkeypatch, method, target, request), (field, request)


def test_who_signed_long_ago_or_for_tomorrow_is_not_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    headers, now = Signer(KEY).headers("GET", TARGET, b""), time.time()
    for apart, let_in in ((-400.0, False), (-200.0, True), (200.0, True), (400.0, False)):
        monkeypatch.setattr(signatures.time, "time", lambda apart=apart: now + apart)
        assert (signatures._verified_quickly("GET", TARGET, headers) is not None) is let_in
