"""Keeping a server: backup and restore of its home, a note of its last run, and what is wrong with it."""

from __future__ import annotations

import contextlib
import io
import shutil
import stat
import tarfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fedrecplus.deploy.process import processes
from fedrecplus.deploy.process.home_layout import MODELS, OFFERED
from fedrecplus.deploy.process.homes import ServerHome
from fedrecplus.deploy.process.private_files import check_private, write_private
from fedrecplus.deploy.server import figures_of
from fedrecplus.errors import UserError

_KEPT = ("server.json", "nodes.json", "certificates", MODELS)
"""what a backup holds; tokens are made anew"""
_DATABASE = "superlink.db"
_RESTORED = (*_KEPT, OFFERED, _DATABASE)
"""what it held in earlier versions, too"""
_LAST = "last_run"
_FEW_DAYS, _LITTLE_ROOM = 30.0, 2 * 2**30
_SILENT = 600.0
"""seconds without a sign of life"""


def note_run(home: Path, folder: Path) -> None:
    """Note which run folder the server works in."""
    write_private(home / _LAST, str(folder).encode())


def last_run(home: Path) -> Path | None:
    """The run folder that the server worked in last, if it is still there."""
    with contextlib.suppress(OSError):
        folder = Path((home / _LAST).read_text(encoding="utf-8"))
        return folder if folder.is_dir() else None
    return None


def back_up(home: Path, target: Path) -> None:
    """Everything that a server needs to be itself again, in one file that its owner alone may read."""
    if target.exists():
        raise UserError(f"{target} is there already", "give another name")
    if (home / _DATABASE).exists() and not (home / "nodes.json").exists():
        problem = f"{home} is of an earlier version: who was admitted stands in {_DATABASE} alone"
        raise UserError(
            problem, "start the server once (`fedrecplus server up`), which writes the list, then back it up"
        )
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name in (*_KEPT, OFFERED):  # the latter where this version hasn't started the server yet
            if (home / name).exists():
                archive.add(home / name, name)
    write_private(target, content.getvalue())


def restore(source: Path, home: Path) -> None:
    """Make a home of a backup. Nothing is written before all of it was read."""
    if home.exists() and any(home.iterdir()):
        raise UserError(f"{home} isn't empty", "move it away first, or give another --home")
    contents = _contents(source)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.chmod(0o700)  # before the first key is in it
    for name, content in contents.items():
        (home / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(home / name, content)


def _contents(source: Path) -> dict[str, bytes]:
    """The files of a backup. Names and kinds are looked at here: Python 3.11.2 has no filter for them."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                parts = member.name.split("/")
                if parts[0] not in _RESTORED or ".." in parts or not (member.isfile() or member.isdir()):
                    raise UserError(f"{source} holds {member.name}, which is no part of a server's home", "check it")
                if (content := archive.extractfile(member)) is not None:
                    contents[member.name] = content.read()
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise UserError(f"{source}: {error}", "give a file that `server backup` wrote") from None
    return contents


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    good: bool
    remedy: str = ""


def look_over(server: ServerHome) -> list[Finding]:
    """What is right and what is wrong with a server, and what to do."""
    home, found = server.path, list[Finding]()

    def note(what: str, good: bool, remedy: str = "") -> None:
        found.append(Finding(what, good, "" if good else remedy))

    try:
        names = ("control.token", "superexec.secret", "metrics.token", "nodes.json")
        certificates = (server.certificates / name for name in ("ca.key", processes.SERVER_KEY))
        check_private(*(home / name for name in names), *certificates)
        note("keys and tokens are their owner's alone", True)
    except UserError as error:
        note(error.problem, False, error.remedy)
    mode = stat.S_IMODE(home.stat().st_mode)
    note(f"{home} has mode {mode:o}", not mode & 0o077, f"chmod 700 {home}")
    if not server.insecure:
        days = days_left(server.certificates / processes.SERVER)
        note(f"the certificate lasts {days:.0f} days", days > _FEW_DAYS, "fedrecplus server renew")
    room = shutil.disk_usage(home).free
    note(f"{room / 1e9:.1f} GB are free under {home}", room > _LITTLE_ROOM, "make room: a full disk stops runs")
    up = server.is_up()
    note(f"the server answers on port {server.port}" if up else "the server doesn't answer", up, "fedrecplus server up")
    if up:
        _look_at_nodes(server, note)
    run = last_run(home)
    if run is not None:
        _look_at_run(run, note)
    return found


def _look_at_nodes(server: ServerHome, note: Callable[..., None]) -> None:
    try:
        everybody = [node for node in server.nodes() if node["status"] != "expelled"]
    except UserError as error:
        note(error.problem, False, error.remedy)
        return
    if not everybody:
        note("no node is admitted yet: `fedrecplus server invite` makes a link for one", True)
        return
    online = sum(node["status"] == "online" for node in everybody)
    remedy = "invite nodes (`server invite`), or look into the nodes' logs"
    note(f"{online} of {len(everybody)} admitted nodes are here", online > 0, remedy)


def _look_at_run(run: Path, note: Callable[..., None]) -> None:
    figures = figures_of(run)
    failed = figures.phase == "failed"
    said = f": {figures.progress.get('error')}" if failed else ""
    note(f"{run}: round {figures.round}, {figures.phase or 'not begun'}{said}", not failed, "then --resume")
    if figures.set_aside:
        numbers = ", ".join(figures.set_aside)
        note(f"nodes set aside: {numbers}", False, f"read {run / 'server.log'}; then --resume --pardon, or expel them")
    if figures.odd_items:
        note(
            f"{figures.odd_items} times an item moved oddly far", False,
            f"read {run / 'server.log'}; go on with --learn-bound 4, or go back (`rollback --server`)",
        )  # fmt: skip
    if figures.phase in ("starting", "round", "waiting"):
        silent = time.time() - float(figures.progress.get("at", 0.0)) > _SILENT
        note("the run is silent" if silent else "the run gives signs of life", not silent, "deploy run … --resume")


def days_left(path: Path) -> float:
    """Days until a certificate expires; 0 where there is none."""
    from cryptography.x509 import load_pem_x509_certificate

    try:
        end = load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return 0.0
    return (end - datetime.now(UTC)).total_seconds() / 86_400
