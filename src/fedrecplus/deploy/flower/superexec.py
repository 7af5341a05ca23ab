"""Flower's SuperExec, with the server's app forked from a process that has everything imported.

Flower starts a program and writes the token of its task into the command line, where every user of the machine can read
it; a fork has it in memory, and is there at once. Run as a module with the arguments of ``flower-superexec``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
from typing import Any

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.process import end_with_parent


class ForkingExecutor:
    """Takes the place of Flower's ``SubprocessExecutor``; no task but the server's app is ever started."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def reconcile(self) -> None:
        """Let children that are done go."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass

    def launch(self, spec: Any) -> Any:
        """Start the app for one message."""
        if spec.task_type != private.get("flwr.supercore.constant.TaskType.SERVER_APP"):
            raise PermissionError(f"{spec.task_type} is no app of fedrecplus: refused")
        sys.stdout.flush()
        sys.stderr.flush()
        helper = os.getpid()
        if os.fork() == 0:
            _be_the_app(spec, helper)
        return private.get("flwr.supercore.superexec.executor.types.LaunchResult.accepted")()


def _be_the_app(spec: Any, helper: int) -> None:
    """What the child does; it never returns."""
    code = 1
    try:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        os.setpgid(0, 0)  # a group of its own: it ends by itself
        end_with_parent(helper)
        _server_app(spec)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _server_app(spec: Any) -> None:
    safety = ["--insecure"] if spec.insecure else ["--root-certificates", str(spec.root_certificates_path)]
    sys.argv = ["flwr-serverapp", "--runtime-api-address", spec.runtime_api_address, "--token", spec.token, *safety]
    sys.argv += ["--parent-pid", str(spec.parent_pid)] if spec.parent_pid is not None else []
    private.get("flwr.superlink.cli.flwr_serverapp")()


def _parent_of(arguments: list[str]) -> int | None:
    """The SuperLink's number, where the arguments have it."""
    given = dict(itertools.pairwise(arguments)).get("--parent-pid")
    return int(given) if given else None


def main() -> None:
    """``flower-superexec`` with the forking executor.

    Flower's own watch looks whether a process of its parent's number exists, which one that nobody waited for does.
    """
    end_with_parent(_parent_of(sys.argv))
    import fedrecplus.deploy.flower.apps  # noqa: F401  what the forks shall have

    private.get("flwr.superlink.cli.flwr_serverapp")  # the same
    place = "flwr.supercore.superexec.run_superexec.get_executor"
    make = private.get(place)
    private.put(place, lambda *args, **more: ForkingExecutor(make(*args, **more)))
    private.get("flwr.supercore.cli.flower_superexec")()


if __name__ == "__main__":
    main()
