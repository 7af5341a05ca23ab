"""Plain ASGI: a bounded body in, a short answer out."""

from __future__ import annotations

from typing import Any


class Unserved(Exception):
    """A request that isn't served: the status, and why in a few words, which are counted."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why

    async def answer(self, send: Any) -> None:
        """Say so and close the connection: what else comes of the request isn't read."""
        await respond(send, self.status, self.why.encode(), b"text/plain", close=True)


async def respond(send: Any, status: int, content: bytes, kind: bytes, *, close: bool = False) -> None:
    """A whole answer."""
    headers = [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
    headers += [(b"connection", b"close")] if close else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


def check_length(headers: dict[bytes, bytes], longest: int) -> None:
    """Refuse a request by what it says of its length, which the web server holds it to."""
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or int(length) > longest:
        raise Unserved(413, "too long, or of unknown length")


async def body_of(headers: dict[bytes, bytes], receive: Any, longest: int) -> bytes:
    """The body of a request."""
    check_length(headers, longest)
    content = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Unserved(400, "gone")
        content += event.get("body", b"")
        if len(content) > longest:
            raise Unserved(413, "too long, or of unknown length")
        if not event.get("more_body", False):
            return bytes(content)
