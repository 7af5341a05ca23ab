"""The command ``fedrecplus``, and ``python -m fedrecplus``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported needs no traceback either."""
    try:
        from fedrecplus.cli import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
