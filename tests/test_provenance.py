"""Figures say which command, version and commit they come from, and never those of somebody else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fedrecplus
from fedrecplus.provenance import Stopwatch

PACKAGE = Path(fedrecplus.__file__).parent
ASK = "from fedrecplus.provenance import commit; print(commit())"
OWN = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *OWN, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def asked(place: Path) -> str:
    """What a package that lies in ``place`` says its commit is."""
    found = subprocess.run([sys.executable, "-c", ASK], cwd=place, check=True, capture_output=True, text=True)
    return found.stdout.strip()


def copy_of_the_package(folder: Path) -> Path:
    (folder / "fedrecplus").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "lazy.py", "provenance.py", "workers.py"):
        shutil.copy(PACKAGE / name, folder / "fedrecplus" / name)
    return folder


def checkout(folder: Path) -> Path:
    """A repository with the package in it, all committed; where the package lies."""
    source = copy_of_the_package(folder / "src")
    (folder / ".gitignore").write_text("__pycache__/\n")
    git(folder, "init", "--quiet", ".")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "ours")
    return source


def test_an_installed_package_has_no_commit_even_inside_another_checkout(tmp_path: Path) -> None:
    assert asked(copy_of_the_package(tmp_path / "alone")) == "None"
    git(tmp_path, "init", "--quiet", ".")
    (tmp_path / "somebody.txt").write_text("else\n")
    git(tmp_path, "add", "somebody.txt")
    git(tmp_path, "commit", "--quiet", "-m", "theirs")
    assert asked(copy_of_the_package(tmp_path / "site-packages")) == "None"


def test_a_checkout_says_its_commit_and_whether_files_differ(tmp_path: Path) -> None:
    source = checkout(tmp_path)
    known = git(tmp_path, "rev-parse", "--short=12", "HEAD").strip()
    assert asked(source) == known
    (source / "fedrecplus" / "new_rule.py").write_text("x = 1\n")
    assert asked(source) == f"{known} with changes"


def test_asking_for_the_commit_writes_nothing_into_the_checkout(tmp_path: Path) -> None:
    source = checkout(tmp_path)
    os.utime(source / "fedrecplus" / "lazy.py", (1, 1))  # git would note that it is the same all the same
    before = (tmp_path / ".git" / "index").read_bytes()
    asked(source)
    assert (tmp_path / ".git" / "index").read_bytes() == before


def test_what_is_known_at_the_end_is_for_json() -> None:
    made = Stopwatch().made(seed=7)
    assert made["seed"] == 7
    assert made["version"] == fedrecplus.__version__
    assert made["seconds"] >= 0
    assert json.loads(json.dumps(made)) == made
