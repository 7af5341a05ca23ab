"""Flower's SuperExec on a node, with the app's process forked from one that has everything imported.

Flower starts an interpreter for each message, which imports for seconds what a round of one person needs for
milliseconds. A fork of this process has it all. Run as a module with the arguments of ``flower-superexec``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
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
        if spec.task_type != private.get("flwr.supercore.constant.TaskType.CLIENT_APP"):
            return self._inner.launch(spec)
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fork() == 0:
            _be_the_app(spec)
        return private.get("flwr.supercore.superexec.executor.types.LaunchResult.accepted")()


def _be_the_app(spec: Any) -> None:
    """What the child does; it never returns."""
    certificates = private.get("flwr.supercore.tls.validate_and_resolve_root_certificates")
    passed = ("runtime_api_address", "token", "insecure", "parent_pid", "runtime_dependency_install")
    code = 1
    try:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        private.get("flwr.supernode.runtime.run_clientapp.run_clientapp")(
            certificates=certificates(spec.root_certificates_path, spec.insecure),
            **{name: getattr(spec, name) for name in passed},
        )
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


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
