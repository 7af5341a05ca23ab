"""``python -m fedrecplus.deploy.node``: the node as a process of its own, for `deploy local` and for tests."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedrecplus.deploy.node.running import end_with_parent, join, prepare
from fedrecplus.errors import UserError
from fedrecplus.terminal import log_to_stderr, printable


def main() -> int:
    """Run a node until it is told to stop."""
    options = argparse.ArgumentParser(prog="fedrecplus.deploy.node")
    options.add_argument("address")
    options.add_argument("--home", type=Path, required=True)
    options.add_argument("--ca", type=Path)
    options.add_argument("--insecure", action="store_true")
    options.add_argument("--share-error", action="store_true")
    options.add_argument("--poll", type=float, default=30.0)
    options.add_argument("--end-with-parent", action="store_true")
    given = options.parse_args()
    log_to_stderr()
    if given.end_with_parent:
        end_with_parent()
    try:
        node = prepare(
            given.home, given.address, given.ca, insecure=given.insecure, longest_pause=given.poll,
            share_error=given.share_error,
        )  # fmt: skip
        join(given.home, node)
    except UserError as error:
        print(f"error: {printable(error.for_shell)}", file=sys.stderr, flush=True)
        return 2
    except KeyboardInterrupt:
        pass
    return 130


if __name__ == "__main__":
    sys.exit(main())
