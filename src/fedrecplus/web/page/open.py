"""A site on 127.0.0.1 for its owner's own browser: what ``fedrecplus page RUN --open`` starts."""

from __future__ import annotations

import functools
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError


class _Quiet(SimpleHTTPRequestHandler):
    """Files of one folder; what is asked for is nobody's business, so nothing is logged."""

    extensions_map = {  # noqa: RUF012  (the class that we extend has it so)
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".webmanifest": "application/manifest+json",
    }

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        """Let browsers ask again for what may have been built anew."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def file_server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of a folder's files on 127.0.0.1; port 0 takes a free one."""
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Quiet, directory=str(folder)))
    except OSError as error:
        raise UserError(f"127.0.0.1:{port}: {error.strerror or error}", "give another --port, or 0") from None


def address_of(server: ThreadingHTTPServer) -> str:
    """Where a browser finds it."""
    return f"http://127.0.0.1:{server.server_address[1]}/"


def serve_until_stopped(server: ThreadingHTTPServer, *, show: bool = True) -> None:
    """Open a browser and serve until Ctrl-C."""
    if show:
        webbrowser.open(address_of(server))
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
