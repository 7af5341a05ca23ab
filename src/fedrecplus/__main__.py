"""``python -m fedrecplus``."""

from fedrecplus.cli import run

if __name__ == "__main__":
    run()
