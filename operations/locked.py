"""Requirements of the container with the hashes of their wheels, for ``pip install --require-hashes``.

    python operations/locked.py > operations/requirements.txt

Versions are those of ``constraints.txt``, or as installed where it has none; what is required is what the installed
packages say that they require on Linux. pip refuses a wheel that isn't one of these, from whatever index.
"""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("deploy", "privacy", "postgres")
BUILD = ("setuptools",)
"""what the package itself is built with"""
_LINUX = re.compile(r"-(py3|py2\.py3|cp3(11|12|13)|cp\d+-abi3)-.*(any|manylinux\w*_(x86_64|aarch64)).*\.whl$")
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def pinned() -> dict[str, str]:
    """Versions by name."""
    lines = (line.split("==") for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if "==" in line)
    return {canonicalize_name(name): version.strip() for name, version in lines}


def required(package: str = "fedrecplus", extras: tuple[str, ...] = EXTRAS) -> set[str]:
    """Names of all that a package needs on Linux, and what these need."""
    found: set[str] = set()
    waiting = [(package, extras)]
    while waiting:
        name, wanted = waiting.pop()
        for text in requires(name) or ():
            need = Requirement(text)
            places = [{**default_environment(), "extra": extra} for extra in ("", *wanted)]
            if need.marker is not None and not any(need.marker.evaluate(place) for place in places):
                continue
            if canonicalize_name(need.name) not in found:
                found.add(canonicalize_name(need.name))
                waiting.append((need.name, tuple(need.extras)))
    return found - {package}


def index() -> str:
    """The index that pip is set to take packages from."""
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
    found = asked.stdout.decode().strip() or (sys.argv[1] if len(sys.argv) > 1 else "")
    return f"{found.rstrip('/')}/" if found else sys.exit("pip has no index-url of its own: give the index's address")


def hashes(name: str, chosen: str) -> Iterator[str]:
    """SHA-256 of the version's wheels for Linux."""
    with urllib.request.urlopen(f"{index()}{name}/") as page:
        links = re.findall(r'href="[^"]*/([^/"]+\.whl)#sha256=([0-9a-f]{64})"', page.read().decode())
    for file, digest in links:
        if file.split("-")[1] == chosen and _LINUX.search(file):
            yield digest


def main() -> None:
    """A requirement with its hashes after the other."""
    versions = pinned()
    print("# Written by operations/locked.py. Wheels for Linux; anything else is refused.")
    for name in sorted({*required(), *BUILD}):
        chosen = versions.get(name) or version(name)
        found = sorted(set(hashes(name, chosen)))
        if not found:
            sys.exit(f"{name}=={chosen}: no wheel for Linux")
        print(" \\\n    ".join([f"{name}=={chosen}", *(f"--hash=sha256:{digest}" for digest in found)]))


if __name__ == "__main__":
    main()
