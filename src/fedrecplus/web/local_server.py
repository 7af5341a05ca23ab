"""HTTP on 127.0.0.1 by the standard library, for one browser on this machine: a device's page, the operator's, a site.

The page itself may be had by everybody who reaches 127.0.0.1: it is the same for all. Model and store need the token of
the link. It comes in the part of the address that browsers don't send, and goes in a header that pages of other origins
can't set. A cookie would do neither: browsers send it to every port of a machine.
"""

from __future__ import annotations

import hmac
import json
import logging
import socket
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.web.browser import OWN_RESOURCES, SECURITY_HEADERS, media_type

log = logging.getLogger("fedrecplus.local_server")
TOKEN = "X-Device-Token"
_LARGEST_BODY = 10_000
_CONNECTIONS = 16
"""at a time; those beyond are closed"""
_SECONDS = 30.0
"""that a request may take, however it is spread"""


@dataclass(frozen=True)
class PageAnswer:
    """Status, media type and content."""

    status: int
    kind: str
    content: bytes

    @classmethod
    def of(cls, content: Any, status: int = HTTPStatus.OK) -> PageAnswer:
        """As JSON."""
        return cls(status, "application/json", json.dumps(content).encode())

    @classmethod
    def problem(cls, status: int, problem: str, remedy: str = "") -> PageAnswer:
        """An error in words."""
        return cls.of({"problem": problem, "remedy": remedy}, status)


class Pages:
    """What a page can ask for; nothing, unless somebody offers it. Whether it may ask is decided before."""

    def shell(self, name: str) -> PageAnswer | None:
        """A file of the page itself, which anybody may have."""

    def read(self, name: str) -> PageAnswer | None:
        """What only who has the token may have."""

    def change(self, name: str, body: dict[str, Any]) -> PageAnswer | None:
        """A change."""


@dataclass(frozen=True)
class FolderPages(Pages):
    """The files of a folder, and nothing else."""

    folder: Path

    def shell(self, name: str) -> PageAnswer | None:
        """One of them."""
        file = self.folder / (name or "index.html")
        if file.parent != self.folder or not file.is_file():
            return None
        return PageAnswer(HTTPStatus.OK, media_type(file.name), file.read_bytes())


class PageServer(ThreadingHTTPServer):
    """Answers on 127.0.0.1 alone."""

    daemon_threads = True

    def __init__(self, pages: Pages, token: str, port: int = 0, seconds: float = _SECONDS) -> None:
        self.pages, self.seconds = pages, seconds
        self._token, self._room = token.encode(), threading.Semaphore(_CONNECTIONS)
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise UserError(f"127.0.0.1:{port}: {error.strerror}", "choose another --port") from None

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def hosts(self) -> tuple[str, str]:
        """The names that requests may be for; one of another page that points here is none of them."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def is_token(self, given: str) -> bool:
        """Compared in the same time whatever is wrong with it."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for each connection, and no more of them than there is room for."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and cut the connection off if that takes too long."""
        cut_off = threading.Timer(self.seconds, _cut_off, (request,))
        cut_off.daemon = True
        cut_off.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut_off.cancel()
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""
        log.debug("a connection ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version, sys_version = "fedrecplus", ""
    timeout = 10.0

    def do_GET(self) -> None:
        """Files, the model, what the store holds."""
        self._respond(self._get)

    def do_POST(self) -> None:
        """Changes."""
        self._respond(self._post)

    def log_message(self, format: str, *args: Any) -> None:
        """What somebody rates is not for a log."""

    def _respond(self, make: Any) -> None:
        try:
            answer = self._refused() or make(self.path.partition("?")[0].lstrip("/"))
            answer = answer or PageAnswer.problem(HTTPStatus.NOT_FOUND, "there is nothing of this name")
        except UserError as error:
            answer = PageAnswer.problem(HTTPStatus.UNPROCESSABLE_ENTITY, error.problem, error.remedy)
        except Exception:
            log.exception("a request failed")
            answer = PageAnswer.problem(HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; the terminal says why")
        self._send(answer)

    def _refused(self) -> PageAnswer | None:
        """Whose requests are not looked into: those for another name, and those of pages from elsewhere."""
        hosts, origins = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            return PageAnswer.problem(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in origins):
            return PageAnswer.problem(HTTPStatus.FORBIDDEN, "pages from elsewhere are not let in")
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not self._is_navigation():
            return PageAnswer.problem(HTTPStatus.FORBIDDEN, "pages from elsewhere are not let in")
        return None

    def _is_navigation(self) -> bool:
        """Whether a link was followed, by the person rather than by a page's script: the token is asked for anyway."""
        return self.command == "GET" and self.headers.get("Sec-Fetch-Mode") == "navigate"

    def _get(self, name: str) -> PageAnswer | None:
        return self.server.pages.shell(name) or self._without_token() or self.server.pages.read(name)

    def _post(self, name: str) -> PageAnswer | None:
        if refused := self._without_token():
            return refused
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length[:20]) > _LARGEST_BODY:
            return PageAnswer.problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too large, or has no length")
        if self.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            return PageAnswer.problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is not called JSON")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            return PageAnswer.problem(HTTPStatus.BAD_REQUEST, "the body is no JSON object")
        return self.server.pages.change(name, body)

    def _without_token(self) -> PageAnswer | None:
        given = self.headers.get_all(TOKEN, [])
        if len(given) == 1 and self.server.is_token(given[0]):
            return None
        remedy = "open the link that the command printed"
        return PageAnswer.problem(HTTPStatus.UNAUTHORIZED, "this page needs its link", remedy)

    def _send(self, answer: PageAnswer) -> None:
        self.send_response(answer.status)
        headers = {"Content-Type": answer.kind, "Content-Length": str(len(answer.content)), "Cache-Control": "no-store"}
        for name, value in (headers | SECURITY_HEADERS | OWN_RESOURCES).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)


def _cut_off(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
