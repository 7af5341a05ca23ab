"""Flower's SuperLink, with our own gate in front, our own process for its app, and bounded connections.

Flower serves three APIs on one port. The Control API starts any code for whoever reaches it, and isn't reachable here;
the Fleet API is answered by ``fleet.py``, the operator by ``operations.py``. The helper that starts the server's app
proves itself by a secret that its owner alone can read, and hands the app its token in memory, where other users of the
machine don't see it. Run as a module with the arguments of ``flower-superlink``.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.middleware import Middleware

from fedrecplus.deploy.flower import enrolment, fleet, metrics, operations, private
from fedrecplus.deploy.flower.app_messages import AppMessages
from fedrecplus.deploy.flower.connections import BoundedConnection, allow_many_files, new_loop
from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.enrolment import Invitations
from fedrecplus.deploy.flower.gate import Gate
from fedrecplus.deploy.flower.logs import log_to
from fedrecplus.deploy.flower.long_polling import LongPolling
from fedrecplus.deploy.flower.memory import BoundedObjectStore, keep_pruned, prepare
from fedrecplus.deploy.flower.roster import Roster
from fedrecplus.deploy.process import SERVER_HOME, end_with_parent, make_secret

_CREATE = "flwr.superlink.main.create_app"
_STORE = "flwr.supercore.object_store.object_store_factory.InMemoryObjectStore"
_SECRET = "--superexec-auth-secret-file"


def guarded(create: Any, home: Path) -> Any:
    """Wrap the function that builds Flower's app: the gate becomes its outermost layer."""

    def build(*arguments: Any, **more: Any) -> Any:
        app = create(*arguments, **more)
        state, keyed = app.state.linkstate_factory.state(), bool(app.state.enable_supernode_auth)
        prepare(state)
        roster = Roster(home, state)
        polling, invitations = LongPolling(state), Invitations(home)
        nodes = fleet.FleetApi(roster.number_of, state, polling, keyed=keyed)
        more = {"invite": lambda name, hours: {"code": invitations.make(str(name), 3600.0 * float(hours))}}
        apis = {
            fleet.PREFIX: nodes,
            operations.PREFIX: operations.Operations(home, state, roster, more),
            metrics.PATH: metrics.Metrics(home, make_secret(home / metrics.TOKEN), state),
            enrolment.PREFIX: enrolment.Enrolment(home, roster, invitations, nodes.authenticate),
        }
        keep_pruned(state)
        COUNTERS.message_bytes = lambda: state.object_store.bytes
        app.user_middleware.insert(0, Middleware(Gate, state=state, apis=apis, messages=AppMessages(state, polling)))
        return app

    return build


def bounded_uvicorn() -> SimpleNamespace:
    """The ``uvicorn`` module for Flower's program: connections with limits."""

    def run(**options: Any) -> None:
        allow_many_files()
        options |= {
            "http": BoundedConnection, "ws": "none", "loop": f"{new_loop.__module__}:{new_loop.__name__}",
            "access_log": False, "backlog": 2048, "server_header": False, "log_config": None,
            "proxy_headers": False,  # who calls is who connects: the gate decides by it
        }  # fmt: skip
        uvicorn.run(**options)

    return SimpleNamespace(**{**vars(uvicorn), "run": run})


def start_superexec(arguments: list[str], secret: Path) -> subprocess.Popen[bytes]:
    """The helper that starts the server's app: ours, with the secret."""
    given = dict(itertools.pairwise(arguments))
    host = given.get("--host", "127.0.0.1")
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    safety = ["--insecure"] if "--insecure" in arguments else ["--root-certificates", given["--ssl-ca-certfile"]]
    command = [
        sys.executable, "-m", "fedrecplus.deploy.flower.superexec", *safety, _SECRET, str(secret),
        "--runtime-api-address", f"{host}:{given['--port']}", "--parent-pid", str(os.getpid()),
    ]  # fmt: skip
    return subprocess.Popen(command, env={**os.environ, "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "1"})


def main() -> None:
    """``flower-superlink`` behind the gate."""
    end_with_parent()
    os.umask(0o077)
    home = Path(os.environ[SERVER_HOME])
    private.get(_CREATE)  # configures its own logging when it is imported
    log_to(home)
    secret = home / "superexec.secret"
    make_secret(secret)
    private.put(_STORE, BoundedObjectStore)
    private.put(_CREATE, guarded(private.get(_CREATE), home))
    private.put("flwr.superlink.cli.flower_superlink.uvicorn", bounded_uvicorn())
    helper = start_superexec(sys.argv[1:], secret)
    sys.argv += ["--isolation", "process", _SECRET, str(secret)]
    try:
        private.get("flwr.superlink.cli.flower_superlink")()
    finally:
        helper.terminate()


if __name__ == "__main__":
    main()
