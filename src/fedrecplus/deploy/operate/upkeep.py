"""Keeping a server: a backup of its keys and SQLite database, and what is wrong with it."""

from __future__ import annotations

import contextlib
import io
import shutil
import sqlite3
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.deploy.operate.certificates import SERVER_KEY
from fedrecplus.deploy.operate.homes import DATABASE, TOKEN, ServerHome
from fedrecplus.deploy.server import StoredRun, figures_of
from fedrecplus.deploy.server.lease import is_held
from fedrecplus.deploy.server.stored_run import FAILED, QUEUED, RUNNING
from fedrecplus.errors import UserError
from fedrecplus.files import check_private, check_writable, write_private

_KEPT = ("server.json", TOKEN, "certificates")
_FEW_DAYS, _LITTLE_ROOM = 30.0, 2 * 2**30
_SILENT = 600.0
"""seconds without a sign of life"""


def back_up(server: ServerHome, target: Path) -> None:
    """Everything that a server needs to be itself again, in one file that its owner alone may read.

    A SQLite database is in it, copied by SQLite itself while the server may be up. PostgreSQL's is pg_dump's business.
    """
    if target.exists():
        raise UserError(f"{target} is there already", "give another name")
    if server.database.is_sqlite:
        server.database.check(tables=True)  # else SQLite would make an empty one, and that would be the backup
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive, tempfile.TemporaryDirectory() as folder:
        for name in _KEPT:
            if (server.path / name).exists():
                archive.add(server.path / name, name)
        if server.database.is_sqlite:
            copy = Path(folder) / DATABASE
            with (
                contextlib.closing(sqlite3.connect(server.path / DATABASE)) as source,
                contextlib.closing(sqlite3.connect(copy)) as to,
            ):
                source.backup(to)
            archive.add(copy, DATABASE)
    write_private(target, content.getvalue())


def restore(source: Path, home: Path) -> None:
    """Make a home of a backup, whole or not at all: without its database it would be another server."""
    if home.exists() and any(home.iterdir()):
        raise UserError(f"{home} isn't empty", "move it away first, or give another --home")
    contents, half = _contents(source), home.with_name(f".{home.name}.part")
    shutil.rmtree(half, ignore_errors=True)
    check_writable(home.parent)
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        half.mkdir(mode=0o700)
        for name, content in contents.items():
            (half / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(half / name, content)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    try:
        if home.exists():
            home.rmdir()
        half.rename(home)
    except OSError as error:  # such as a mounted volume
        raise UserError(f"{home}: {error.strerror}", f"give a folder in it; {half} has all, for you to move") from None


def _contents(source: Path) -> dict[str, bytes]:
    """The files of a backup. Names and kinds are looked at here: Python 3.11.2 has no filter for them."""
    contents: dict[str, bytes] = {}
    try:
        with tarfile.open(source) as archive:
            for member in archive:
                parts = member.name.split("/")
                known = parts[0] in (*_KEPT, DATABASE) and ".." not in parts
                if not known or not (member.isfile() or member.isdir()):
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
    home, findings = server.path, list[Finding]()

    def note(what: str, good: bool, remedy: str = "") -> None:
        findings.append(Finding(what, good, "" if good else remedy))

    try:
        names = (home / name for name in (TOKEN, "server.json", DATABASE))
        check_private(*names, *(server.certificates / name for name in ("ca.key", SERVER_KEY)))
        note("keys and tokens are their owner's alone", True)
    except UserError as error:
        note(error.problem, False, error.remedy)
    mode = stat.S_IMODE(home.stat().st_mode)
    note(f"{home} has mode {mode:o}", not mode & 0o077, f"chmod 700 {home}")
    if not server.insecure:
        days = server.certificate_days
        lasts = f"lasts {days:.0f} days" if days > 0.0 else "has expired: no node connects"
        note(f"the certificate {lasts}", days > _FEW_DAYS, "`fedrecplus server renew`, and restart the server")
    room = shutil.disk_usage(home).free
    note(f"{room / 1e9:.1f} GB are free under {home}", room > _LITTLE_ROOM, "make room: a full disk stops runs")
    up = server.is_up()
    note(f"the server answers on port {server.port}" if up else "the server doesn't answer", up, "fedrecplus server up")
    try:
        server.database.check(tables=True)
    except UserError as error:
        note(error.problem, False, error.remedy)
        return findings
    held = is_held(server.database)
    note("a process coordinates" if held else "nobody coordinates rounds", held, "fedrecplus server up")
    _look_at_nodes(server, note)
    if (run := StoredRun.newest(server.database)) is not None:
        _look_at_run(run, note)
    return findings


def _look_at_nodes(server: ServerHome, note: Callable[..., None]) -> None:
    everybody = [node for node in server.roster.everybody() if node["status"] != "expelled"]
    if not everybody:
        note("no node is admitted yet: `fedrecplus server invite` makes a link for one", True)
        return
    online = sum(node["status"] == "online" for node in everybody)
    remedy = "invite nodes (`server invite`), or look into the nodes' logs"
    note(f"{online} of {len(everybody)} admitted nodes are here", online > 0, remedy)


def _look_at_run(run: StoredRun, note: Callable[..., None]) -> None:
    figures, name = figures_of(run), f"run {run.number}"
    failed = figures.phase == FAILED
    said = f": {figures.progress.get('error')}" if failed else ""
    note(f"{name}: round {figures.round}, {figures.phase}{said}", not failed, "then --resume")
    if figures.set_aside:
        numbers = ", ".join(figures.set_aside)
        note(f"nodes set aside: {numbers}", False, "read the server's log; then --resume --pardon, or expel them")
    if figures.odd_items:
        note(
            f"{figures.odd_items} times an item moved oddly far", False,
            "read the server's log; go on with --learn-bound 4, or go back (`rollback --server`)",
        )  # fmt: skip
    if figures.phase in (QUEUED, RUNNING) and "at" in figures.progress:
        silent = run.database.time() - float(figures.progress["at"]) > _SILENT
        note("the run is silent" if silent else "the run gives signs of life", not silent, "read the server's log")
