"""Flower's SuperExec, with the app's process forked from one that has everything imported.

Flower starts an interpreter for each message, which imports for seconds what a round of one person needs for
milliseconds. A fork of this process has it all. And Flower writes the token of the app's task into its command line,
where every user of the machine can read it; a fork has it in memory. Run as a module with the arguments of
``flower-superexec``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from fedrecplus.deploy.flower import private


class ForkingExecutor:
    """Takes the place of Flower's ``SubprocessExecutor`` for messages; its other tasks start as they always did."""

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
        kinds = {private.get(f"flwr.supercore.constant.TaskType.{name}_APP"): name for name in ("CLIENT", "SERVER")}
        if spec.task_type not in kinds:
            raise PermissionError(f"{spec.task_type} is no app of fedrecplus: refused")
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fork() == 0:
            _be_the_app(spec, _server_app if kinds[spec.task_type] == "SERVER" else _client_app)
        return private.get("flwr.supercore.superexec.executor.types.LaunchResult.accepted")()


def _be_the_app(spec: Any, run: Callable[[Any], None]) -> None:
    """What the child does; it never returns."""
    code = 1
    try:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        run(spec)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


def _client_app(spec: Any) -> None:
    certificates = private.get("flwr.supercore.tls.validate_and_resolve_root_certificates")
    passed = ("runtime_api_address", "token", "insecure", "parent_pid", "runtime_dependency_install")
    private.get("flwr.supernode.runtime.run_clientapp.run_clientapp")(
        certificates=certificates(spec.root_certificates_path, spec.insecure),
        **{name: getattr(spec, name) for name in passed},
    )


def _server_app(spec: Any) -> None:
    os.setpgid(0, 0)  # it ends by itself, also where the SuperLink's group is killed
    safety = ["--insecure"] if spec.insecure else ["--root-certificates", str(spec.root_certificates_path)]
    sys.argv = ["flwr-serverapp", "--runtime-api-address", spec.runtime_api_address, "--token", spec.token, *safety]
    sys.argv += ["--parent-pid", str(spec.parent_pid)] if spec.parent_pid is not None else []
    private.get("flwr.superlink.cli.flwr_serverapp")()


def main() -> None:
    """``flower-superexec`` with the forking executor."""
    import fedrecplus.deploy.flower.apps  # noqa: F401  what the forks shall have

    private.get("flwr.supernode.runtime.run_clientapp.run_clientapp")  # the same
    place = "flwr.supercore.superexec.run_superexec.get_executor"
    make = private.get(place)
    private.put(place, lambda *args, **more: ForkingExecutor(make(*args, **more)))
    private.get("flwr.supercore.cli.flower_superexec")()


if __name__ == "__main__":
    main()
