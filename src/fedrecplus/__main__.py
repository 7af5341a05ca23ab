"""``python -m fedrecplus``."""

from fedrecplus.cli.main import run

if __name__ == "__main__":
    run()
