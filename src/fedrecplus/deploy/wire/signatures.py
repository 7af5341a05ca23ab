"""Who sends a request: a signature by the node's Ed25519 key over method, path, query and body, with time and nonce.

After: RFC 9421 (HTTP Message Signatures) and RFC 9530 (Content-Digest). The host is not covered: proxies change it, and
another server doesn't know the key, since a home that joins another one gets another. Headers are verified before a
byte of the body is read.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from http_message_signatures import (
    HTTPMessageSigner,
    HTTPMessageVerifier,
    HTTPSignatureKeyResolver,
    algorithms,
)
from http_message_signatures.exceptions import HTTPMessageSignaturesException

WINDOW = 300.0
"""seconds that a signature is good for, and that clocks may differ by"""
_COVERED = ("@method", "@path", "@query", "content-digest")
_TAG = "fedrecplus"
_NAMES = ("content-digest", "signature", "signature-input")


_AS_NODES_SIGN = re.compile(
    r'([a-z]{1,16})=(\("@method" "@path" "@query" "content-digest"\);created=([0-9]{1,12});keyid="([0-9a-f]{64})";'
    rf'alg="ed25519";nonce="([A-Za-z0-9_=-]{{1,64}})";tag="{_TAG}")'
)
_SIGNATURE = re.compile(r"([a-z]{1,16})=:([A-Za-z0-9+/]{86}==):")
_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")
_TARGET = re.compile(r"/[A-Za-z0-9/_.-]*(\?[A-Za-z0-9&=_.-]*)?")
"""headers and targets as our own nodes and pages write them"""


class Unsigned(Exception):
    """A request that nobody proves to have sent."""


@dataclass
class _Message:
    """A request as the library looks at it."""

    method: str
    url: str
    headers: dict[str, str]


class _Keys(HTTPSignatureKeyResolver):
    """A key is called by what it is, in hexadecimal."""

    def __init__(self, private: Ed25519PrivateKey | None = None) -> None:
        self._private = private

    def resolve_public_key(self, key_id: str) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key_id))

    def resolve_private_key(self, key_id: str) -> Ed25519PrivateKey:
        assert self._private is not None
        return self._private


class Signer:
    """Signs a node's requests."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self.name = key.public_key().public_bytes_raw().hex()
        """the public key in hexadecimal, by which a server looks it up"""
        self._signer = HTTPMessageSigner(signature_algorithm=algorithms.ED25519, key_resolver=_Keys(key))

    def headers(self, method: str, target: str, body: bytes) -> dict[str, str]:
        """The headers that go with a request; ``target`` is its path and query."""
        message = _Message(method, f"https://server{target}", {})
        self._signer.sign(
            message, key_id=self.name, nonce=secrets.token_urlsafe(12), tag=_TAG, covered_component_ids=_COVERED,
            body=body,
        )  # fmt: skip
        return {name.lower(): value for name, value in message.headers.items()}


@dataclass(frozen=True)
class Verified:
    """A request's proven sender, and what the body must be."""

    key: str
    nonce: str
    _check: Callable[[bytes], Any]

    def check_body(self, body: bytes) -> None:
        """Refuse a body that the signature isn't of."""
        try:
            self._check(body)
        except HTTPMessageSignaturesException as error:
            raise Unsigned(str(error)) from None


_VERIFIER = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=_Keys())
_VERIFIER.max_clock_skew = timedelta(seconds=WINDOW)


def verify(method: str, target: str, headers: Mapping[str, str]) -> Verified:
    """Whose key signed these headers, known or not; ``Unsigned`` where none did."""
    message = _Message(method, f"https://server{target}", {name: headers[name] for name in _NAMES if name in headers})
    if (verified := _verified_quickly(method, target, message.headers)) is not None:
        return verified
    try:
        results = _VERIFIER.verify(message, max_age=timedelta(0), expect_tag=_TAG, require_components=_COVERED)
    except (HTTPMessageSignaturesException, ValueError, KeyError, TypeError, OverflowError) as error:
        raise Unsigned(type(error).__name__) from None
    parameters = results[0].parameters
    key, nonce = str(parameters.get("keyid", "")), str(parameters.get("nonce", ""))
    if not nonce:
        raise Unsigned("no nonce")
    return Verified(key, nonce, lambda body: _VERIFIER.verify_body(message, results, body))


def _verified_quickly(method: str, target: str, headers: Mapping[str, str]) -> Verified | None:
    """What ``verify`` says of a good signature in the form that nodes send, in a third of the library's time.

    Polls of idle devices are most of what a worker does, and parsing any header that RFC 9421 allows was most of a
    poll. None: whatever is of another form, or isn't good here, the library judges.
    """
    given = _AS_NODES_SIGN.fullmatch(headers.get("signature-input", ""))
    signature, digest = _SIGNATURE.fullmatch(headers.get("signature", "")), headers.get("content-digest", "")
    if given is None or signature is None or not _DIGEST.fullmatch(digest) or not _TARGET.fullmatch(target):
        return None
    label, parameters, created, key, nonce = given.groups()
    if label != signature[1] or not method.isupper() or abs(time.time() - int(created)) > WINDOW - 1.0:
        return None
    path, _, query = target.partition("?")
    signed = (
        f'"@method": {method}\n"@path": {path}\n"@query": ?{query}\n"content-digest": {digest}\n'
        f'"@signature-params": {parameters}'
    )
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(base64.b64decode(signature[2]), signed.encode("ascii"))
    except (InvalidSignature, ValueError):
        return None

    def check(body: bytes) -> None:
        if digest != f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:":
            raise Unsigned("another body")

    return Verified(key, nonce, check)
