"""Joining by invitation: one-time codes that expire, for strangers who have nothing else yet.

`/v1/join/authority` gives the authority's certificate, which a link pins by its fingerprint; `/v1/join/enrol` takes a
code and a key; `/v1/join/model` gives the current model to nodes that were admitted. Codes have 120 bits, stand on the
disk as hashes, work for one key, and nobody tries many of them: each address has a rate of its own, in IPv6 each
network of 64 bits, and wrong codes have one together, so that strangers keep nobody out who has a right one.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.operations import pem_of
from fedrecplus.deploy.flower.respond import Unserved, body_of, respond
from fedrecplus.deploy.flower.roster import LONGEST_NAME, Roster
from fedrecplus.deploy.process import CA, MODELS, check_private, write_private
from fedrecplus.errors import UserError
from fedrecplus.rates import TokenBuckets, peer_of
from fedrecplus.training.model_files import MODEL
from fedrecplus.training.registry import Registry

PREFIX = "/v1/join/"
INVITATIONS = "invitations.json"
_LONGEST = 4096
_PER_SECOND, _AT_ONCE = 0.2, 10.0
_WRONG_PER_SECOND, _WRONG_AT_ONCE = 5.0, 100.0
"""requests of one address, and wrong codes of all together"""
MOST_OPEN = 1000


class Claim(NamedTuple):
    """A code that a key may use."""

    name: str
    """that the code was made for"""
    done: bool
    """whether the key was admitted by it"""


class Invitations:
    """Codes in a file of the server's home: hash of the code → name, end, and the hash of the key that uses it."""

    def __init__(self, home: Path) -> None:
        self._path, self._lock = home / INVITATIONS, threading.Lock()
        check_private(self._path)

    def make(self, name: str, seconds: float) -> str:
        """A new code."""
        code = secrets.token_urlsafe(15)
        with self._lock:
            open_ones = self._read()
            if sum("key" not in one for one in open_ones.values()) >= MOST_OPEN:
                raise UserError(f"{MOST_OPEN} invitations are open", "wait until some expire")
            self._write({**open_ones, _hash(code): {"name": name[:LONGEST_NAME], "until": time.time() + seconds}})
        return code

    def claim(self, code: str, key: bytes) -> Claim | None:
        """A code for a key, which alone may use it from then on; None where it is no code, another's, or has expired.

        Claimed and not yet admitted is what a crash leaves: the same key comes again, and nothing is lost.
        """
        with self._lock:
            known, owner = self._read(), hashlib.sha256(key).hexdigest()
            found = known.get(_hash(code))
            if found is None or found.get("key", owner) != owner:
                return None
            if "key" not in found:
                self._write({**known, _hash(code): {**found, "key": owner}})
        return Claim(str(found["name"]), bool(found.get("done", False)))

    def finish(self, code: str) -> None:
        """The key of a code was admitted. The answer may be lost on the way, so it stays known until it expires."""
        with self._lock:
            known = self._read()
            if _hash(code) in known:
                self._write({**known, _hash(code): {**known[_hash(code)], "done": True}})

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            content: dict[str, dict[str, Any]] = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        return {name: one for name, one in content.items() if one["until"] > time.time()}

    def _write(self, open_ones: dict[str, dict[str, Any]]) -> None:
        write_private(self._path, json.dumps(open_ones).encode())


class Enrolment:
    """The ASGI endpoint of all paths below ``PREFIX``."""

    def __init__(self, home: Path, roster: Roster, invitations: Invitations, authenticate: Any) -> None:
        self._home, self._roster, self._invitations = home, roster, invitations
        self._authenticate = authenticate
        self._rates, self._wrong = TokenBuckets(_PER_SECOND, _AT_ONCE), TokenBuckets(_WRONG_PER_SECOND, _WRONG_AT_ONCE)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        name, headers = scope["path"].removeprefix(PREFIX), dict(scope["headers"])
        if name == "model" and scope["method"] == "GET":
            key, _ = await self._authenticate(headers, "model")
            if not self._rates.take(key):  # each answer is a whole table in memory
                raise Unserved(429, "too many tries")
            content = await run_in_threadpool(self._current_model)
            await respond(send, 200, content, b"application/octet-stream")
            return
        if not self._rates.take(peer_of((scope.get("client") or ("",))[0])):
            raise Unserved(429, "too many tries")
        if name == "authority" and scope["method"] == "GET":
            content = await run_in_threadpool(_content, self._home / "certificates" / CA)
            await respond(send, 200, content, b"application/x-pem-file")
            return
        if name != "enrol" or scope["method"] != "POST":
            raise Unserved(404, "no such call")
        reply = await run_in_threadpool(self._enrol, await body_of(headers, receive, _LONGEST))
        await respond(send, 200, json.dumps(reply).encode(), b"application/json")

    def _current_model(self) -> bytes:
        """The model that the server's registry says is current, if it is what was published."""
        try:
            model = Registry(self._home / MODELS).current()
            model.check()
        except UserError:
            raise Unserved(404, "there is none") from None
        return _content(model.folder / MODEL)

    def _enrol(self, content: bytes) -> dict[str, Any]:
        try:
            facts = json.loads(content)
            code, key, wished = str(facts["code"]), pem_of(str(facts["key"])), str(facts.get("name", ""))
            code.encode()
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, UserError):
            raise Unserved(400, "malformed") from None
        claim = self._invitations.claim(code, key)
        number = self._roster.number_of(key) if claim is not None and claim.done else None
        if claim is None or (claim.done and number is None):  # one that was expelled comes back by no old link
            if not self._wrong.take("all"):
                raise Unserved(429, "too many tries")
            raise Unserved(403, "no such invitation, or it was used, or has expired")
        name = claim.name or wished
        if number is None:
            number, _ = self._roster.admit(key, name)
            self._invitations.finish(code)
            COUNTERS.enrolled += 1
        return {"node-id": str(number), "name": name}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise Unserved(404, "there is none") from None


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
