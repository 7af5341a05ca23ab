"""The operator's page: a server's last run as it goes, on this machine, for who has the address with its token.

The token is the address's fragment, which no browser sends and no log has; the page sends it in a header. A cookie
would go to every port of this machine, and other users' programs listen there.
"""

from __future__ import annotations

import hmac
import json
import secrets
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.upkeep import look_over
from fedrecplus.deploy.server import StoredRun, figures_of
from fedrecplus.errors import UserError
from fedrecplus.training import Ledger

_PAGE = Path(__file__).with_name("operator_page.html")
_SHOWN = 200
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


def state_of(server: ServerHome) -> dict[str, Any]:
    """All that the page shows: the last run's rounds and figures, its budget, and what `server status` finds."""
    findings = [asdict(finding) for finding in look_over(server)]
    run = StoredRun.newest(server.database)
    if run is None:
        return {"run": None, "findings": findings}
    rounds = [
        {
            "round": line["round"], "seconds": line["seconds"], "nodes": len(line["nodes"]), "rmse": line["rmse"],
            "lost": len(line["lost"]) + len(line["silent"]), "odd": len(line.get("odd_items", ())),
        }
        for line in run.lines()[-_SHOWN:]
    ]  # fmt: skip
    figures = asdict(figures_of(run))
    return {"run": f"run {run.number}", "rounds": rounds, **figures, "budget": _budget(run), "findings": findings}


def _budget(run: StoredRun) -> dict[str, float] | None:
    """The ε that the run may spend and has spent; None where it has no budget."""
    try:
        config = run.config()
        ledger = Ledger.of_model(run.book, config, run.deployment.model)
        return None if ledger is None else {"spent": ledger.spent(), "allowed": config.privacy.settings.epsilon}
    except (UserError, AttributeError, ImportError):
        return None


def page_server(server: ServerHome, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A web server on 127.0.0.1, and the address to open; others on the machine don't know its token."""
    token = secrets.token_urlsafe(16)

    class Page(BaseHTTPRequestHandler):
        """Two answers: the page, and the state as JSON."""

        def do_GET(self) -> None:
            """Answer a browser."""
            given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if host not in ("127.0.0.1", "localhost"):
                self._say(403, b"only from this machine", "text/plain")
            elif self.path == "/":  # it has nothing to hide
                self._say(200, _PAGE.read_bytes(), "text/html; charset=utf-8")
            elif self.path != "/state":
                self._say(404, b"no such page", "text/plain")
            elif not hmac.compare_digest(given.encode("utf-8", "replace"), token.encode()):
                self._say(403, b"the address has a token", "text/plain")
            else:
                self._say(200, json.dumps(state_of(server)).encode(), "application/json")

        def _say(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-store",
                "Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
            }.items():  # fmt: skip
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing: it would fill the terminal."""

    web = ThreadingHTTPServer(("127.0.0.1", port), Page)
    web.daemon_threads = True
    return web, f"http://127.0.0.1:{web.server_address[1]}/#{token}"
