"""The process that runs rounds: it waits for the lease, then works on one run after the other."""

from __future__ import annotations

import logging
import threading

from fedrecplus.deploy.server.database import FAILED, Database, first_line
from fedrecplus.deploy.server.lease import Lease, LeaseLost
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.server.rounds import serve
from fedrecplus.deploy.server.stored_run import CoordinatedRun, StoredRun
from fedrecplus.errors import UserError

log = logging.getLogger("fedrecplus")
_LOOK = 0.3
"""seconds between looks for a run, or for the lease"""


def coordinate(database: Database, ending: threading.Event, seconds: float) -> None:
    """Coordinate whenever nobody else does, until told to end."""
    lease, is_away = Lease(database, seconds), False
    while not ending.wait(_LOOK):
        try:
            held, is_away = lease.take(), False
            if not held:
                continue
            with lease.kept():
                log.info("coordinating, by lease %s", lease.number)
                _work(lease, ending)
        except LeaseLost as lost:
            log.warning("%s: another process coordinates", lost)
        except FAILED as error:
            if not is_away:  # said once, or an outage of an hour fills the log
                log.warning("the database doesn't answer (%s); trying on", first_line(error))
            is_away = True


def _work(lease: Lease, ending: threading.Event) -> None:
    """One run after the other, as long as the lease is ours."""
    while not ending.wait(_LOOK):
        with lease.database.reading() as connection:
            lease.check(connection)
        waiting = StoredRun.next_in_line(lease.database)
        if waiting is None:
            continue
        run = CoordinatedRun(lease, waiting.number)
        try:
            serve(DatabaseLink(run), run)
        except (LeaseLost, *FAILED):
            raise
        except UserError:
            pass  # it is said in the run, and its follower says it
        except Exception:
            log.exception("run %s", run.number)
