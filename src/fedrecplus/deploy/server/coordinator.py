"""The process that runs rounds: it waits for the lease, then works on one run after the other."""

from __future__ import annotations

import logging
import threading

from fedrecplus.deploy.server.database import FAILED, Database
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
    lease = Lease(database, seconds)
    while not ending.wait(_LOOK):
        try:
            held = lease.take()
            database.is_back()
            if not held:
                continue
            with lease.kept():
                log.info("coordinating, by lease %s", lease.number)
                _work(lease, ending)
        except LeaseLost as lost:
            log.warning("%s: another process coordinates", lost)
        except FAILED as error:
            database.is_away(error)


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
