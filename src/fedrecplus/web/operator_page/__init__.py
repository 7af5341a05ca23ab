"""The operator's page on 127.0.0.1: a server's last run as it goes, for who has the link."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fedrecplus.deploy.operate import ServerHome, look_over
from fedrecplus.deploy.server import StoredRun, figures_of
from fedrecplus.errors import UserError
from fedrecplus.training import Ledger
from fedrecplus.web.browser import media_type
from fedrecplus.web.local_server import PageAnswer, Pages, PageServer

_SITE = Path(__file__).with_name("site")
_FILES = ("index.html", "page.js", "page.css")
_SHOWN = 200


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


@dataclass(frozen=True)
class OperatorPages(Pages):
    """Everything that the page can ask for; it changes nothing."""

    server: ServerHome

    def shell(self, name: str) -> PageAnswer | None:
        """A file of the page itself: it has nothing to hide."""
        name = name or "index.html"
        return PageAnswer(HTTPStatus.OK, media_type(name), (_SITE / name).read_bytes()) if name in _FILES else None

    def read(self, name: str) -> PageAnswer | None:
        """The state, as JSON."""
        return PageAnswer.of(state_of(self.server)) if name == "state" else None


def page_server(server: ServerHome, port: int = 0) -> tuple[PageServer, str]:
    """A web server on 127.0.0.1, and the address to open; others on the machine don't know its token."""
    token = secrets.token_urlsafe(16)
    web = PageServer(OperatorPages(server), token, port)
    return web, f"{web.address}#token={token}"
