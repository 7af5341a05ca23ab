"""Flower's SuperLink, with a gate in front: only nodes may call from other machines, and not with whatever they like.

Flower serves three APIs on one port. The Fleet API is for nodes and checks their keys. The Control API, which starts
code, and the Runtime API take anybody who reaches the port: here they answer this machine alone. Flower takes requests
of any size, and cuts arrays into chunks of 5 MB. Run as a module with the arguments of ``flower-superlink``.
"""

from __future__ import annotations

from typing import Any

from starlette.middleware import Middleware

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.process import end_with_parent, is_loopback

_FOR_EVERYBODY = ("/v1/fleet/", "/health")
LONGEST = 32 * 2**20
"""bytes of a request"""


class Gate:
    """An ASGI middleware that refuses what isn't for nodes, unless the caller is on this machine."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass on or refuse."""
        status, why = _refusal(scope) if scope["type"] == "http" else (0, b"")
        if not status:
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": why})


def _refusal(scope: Any) -> tuple[int, bytes]:
    """The status and the reason to refuse a request with; no status where there is none."""
    caller, headers = (scope.get("client") or ("",))[0], dict(scope["headers"])
    if not scope["path"].startswith(_FOR_EVERYBODY) and not is_loopback(caller.removeprefix("::ffff:")):
        return 403, b"only from the server itself"
    length = headers.get(b"content-length", b"0")  # the web server holds a request to what it says
    if b"transfer-encoding" in headers or not length.isdigit() or int(length) > LONGEST:
        return 413, b"too long, or of unknown length"
    return 0, b""


def put_gate_before_all() -> None:
    """Make Flower build its app with the gate as the outermost layer."""
    inner = private.get("flwr.superlink.main._get_middleware")
    private.put("flwr.superlink.main._get_middleware", lambda: [Middleware(Gate), *inner()])


def main() -> None:
    """``flower-superlink`` behind the gate."""
    end_with_parent()
    put_gate_before_all()
    private.get("flwr.superlink.cli.flower_superlink")()


if __name__ == "__main__":
    main()
