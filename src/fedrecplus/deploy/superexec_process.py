"""Flower's SuperExec on a node, with the app's process forked from one that has everything imported.

Flower starts a fresh interpreter for each message, which imports for seconds of processor time what a round of one
person needs for milliseconds. A fork of this process has it all. Run as a module with the arguments of
``flower-superexec``.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any


class ForkingExecutor:
    """Takes the place of Flower's ``SubprocessExecutor`` for messages; its other tasks start as they always did."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def reconcile(self) -> None:
        """Let children that are done go."""
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return
            except ChildProcessError:
                return

    def launch(self, spec: Any) -> Any:
        """Start the app for one message."""
        from flwr.supercore.constant import TaskType
        from flwr.supercore.superexec.executor.types import LaunchResult

        if spec.task_type != TaskType.CLIENT_APP:
            return self._inner.launch(spec)
        sys.stdout.flush()
        sys.stderr.flush()
        if os.fork() == 0:
            _be_the_app(spec)
        return LaunchResult.accepted()


def _be_the_app(spec: Any) -> None:
    """What the child does; it never returns."""
    from flwr.supercore.tls import validate_and_resolve_root_certificates
    from flwr.supernode.runtime.run_clientapp import run_clientapp

    code = 1
    try:
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        run_clientapp(
            runtime_api_address=spec.runtime_api_address,
            token=spec.token,
            insecure=spec.insecure,
            certificates=validate_and_resolve_root_certificates(spec.root_certificates_path, spec.insecure),
            parent_pid=spec.parent_pid,
            runtime_dependency_install=spec.runtime_dependency_install,
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
    from flwr.supercore.cli import flower_superexec

    import fedrecplus.deploy.client_app  # noqa: F401  what the forks shall have

    loop: Any = importlib.import_module("flwr.supercore.superexec.run_superexec")
    make = loop.get_executor
    loop.get_executor = lambda *args, **more: ForkingExecutor(make(*args, **more))
    flower_superexec()


if __name__ == "__main__":
    main()
