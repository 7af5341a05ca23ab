"""MovieLens-100K from a package index, for places that reach one and not GroupLens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fedrecplus.data.movielens.download import Unreachable

REQUIREMENT = "recbole==1.2.1"
_PIP = ("-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check")
_SECONDS = 180


def download_wheel(folder: Path) -> Path:
    """Fetch RecBole's wheel with pip, which knows the user's index and proxy. Nothing is installed."""
    command = [sys.executable, *_PIP, "--dest", str(folder), REQUIREMENT]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(f"pip download {REQUIREMENT}: {error}") from None
    wheels = sorted(folder.glob("*.whl"))
    if finished.returncode != 0 or not wheels:
        last_words = (finished.stderr.strip() or "no wheel came").splitlines()[-1]
        raise Unreachable(f"pip download {REQUIREMENT}: {last_words}")
    return wheels[0]
