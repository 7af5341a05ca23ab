"""A deployed run from its folder to its result: begin, submit, follow, and submit again when the server was killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedrecplus.config import Config
from fedrecplus.deploy.catalogue import ITEMS, ItemCatalogue
from fedrecplus.deploy.journal import JOURNAL, LOG, Journal
from fedrecplus.deploy.locking import is_served
from fedrecplus.deploy.settings import Deployment, check_deployable
from fedrecplus.deploy.starting import LAST
from fedrecplus.deploy.superlink import ServerHome
from fedrecplus.errors import UserError
from fedrecplus.provenance import Stopwatch
from fedrecplus.training.run_folder import RunFolder

_LOOK, _STALE, _MOST_IN_VAIN = 0.3, 15.0, 20


@dataclass(frozen=True)
class View:
    """What there is to show of a run at a moment."""

    standing: dict[str, Any]
    """phase, round, nodes"""
    lines: list[dict[str, Any]]
    """the journal so far"""


def new_model() -> str:
    """A name for a model that nobody had before."""
    return secrets.token_hex(8)


def begin(
    folder: Path,
    config: Config,
    deployment: Deployment,
    catalogue: ItemCatalogue,
    data: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> None:
    """Make a run folder ready for its first round."""
    check_deployable(config)
    RunFolder(folder).check_free(overwrite=overwrite)
    for name in (JOURNAL, LOG, LAST):
        (folder / name).unlink(missing_ok=True)
    noted = {**data, "catalogue": catalogue.digest, "made": Stopwatch().began(config.seed)}
    RunFolder(folder).begin(config, noted, overwrite=overwrite)
    deployment.write(folder)
    catalogue.write(folder / ITEMS)


def run_to_the_end(server: ServerHome, folder: Path, show: Callable[[View], None], say: Callable[[str], None]) -> None:
    """Submit, follow, and go on from the last checkpoint whenever the server or its app was killed.

    An app that works in the folder already, because only its follower was gone, is followed. Ctrl-C ends the app, too.
    """
    journal, idle, first = Journal(folder), 0, True
    run: int | None = None
    try:
        while not RunFolder(folder).finished:
            if idle == _MOST_IN_VAIN:
                raise UserError(
                    f"the server's app died {idle} times in one round", f"look into {folder / LOG}, then use --resume"
                )
            server.wait_until_up(600.0)
            before = len(journal.lines())
            try:
                run = None if _is_at_work(folder) else _submit(server, folder)
            except UserError:
                if server.is_up():
                    raise
                continue  # killed just now
            if run is None:
                say("the server's app is at work; following it")
            elif not first:
                say("the server was gone; going on from the last round")
            _follow(server, folder, run, show)
            idle, first = 0 if len(journal.lines()) > before else idle + 1, False
    except KeyboardInterrupt:
        say("stopping the server's app; go on with --resume")
        _end_app(folder)  # at once: Flower's own way takes as long as a round or two
        if run is not None:
            with contextlib.suppress(UserError):  # a server that is gone has ended it already
                server.stop(run)
        _end_app(folder)  # one that was only about to start
        raise


def note_keys(server: ServerHome, folder: Path) -> None:
    """Note whether nodes are known by their keys: as the server is now, whatever it was in earlier rounds."""
    replace(Deployment.read(folder), keyed=not server.insecure).write(folder)


def _submit(server: ServerHome, folder: Path) -> int:
    note_keys(server, folder)
    return server.submit(folder)


def _follow(server: ServerHome, folder: Path, run: int | None, show: Callable[[View], None]) -> None:
    """Show a run until it ends well, fails for a reason, or is gone. ``run`` is Flower's id where we submitted it."""
    journal, submitted = Journal(folder), time.time()
    while not RunFolder(folder).finished:
        standing = journal.standing()
        fresh = standing.get("at", 0.0) > submitted
        show(View(standing if fresh else {}, journal.lines()))
        if fresh and standing.get("phase") == "failed":
            raise UserError(str(standing.get("error", "the server's app failed")), "then go on with --resume")
        if fresh and not _is_alive(int(standing["pid"])):
            time.sleep(_LOOK)  # it may have ended well in this moment
            return
        silent = time.time() - max(standing.get("at", 0.0), submitted) > _STALE
        if silent and (run is None or _is_over(server, run)):
            return
        time.sleep(_LOOK)
    show(View(journal.standing(), journal.lines()))


def _is_at_work(folder: Path) -> bool:
    """Whether an app holds the folder and gives signs of life; one that a killed SuperLink left behind gives none."""
    return is_served(folder) and time.time() - Journal(folder).standing().get("at", 0.0) < _STALE


def _end_app(folder: Path) -> None:
    """End the app that works in a folder; each round that it closed is on the disk."""
    pid = Journal(folder).standing().get("pid")
    if pid is not None and is_served(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_over(server: ServerHome, run: int) -> bool:
    """Whether a run that has fallen silent is gone: ended, or its server with it."""
    if not server.is_up():
        return True
    try:
        return server.run_status(run).startswith("finished")
    except UserError:
        return True
