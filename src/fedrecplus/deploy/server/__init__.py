"""The server's side: rounds over a database, one coordinator at a time. Knows only the wire."""

from fedrecplus.errors import UserError

try:
    import alembic as _alembic  # noqa: F401
    import fastapi as _fastapi  # noqa: F401
    import sqlalchemy as _sqlalchemy  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as _missing:  # a node needs none of them
    raise UserError(f"a server needs {_missing.name}", "pip install 'fedrecplus[deploy]'") from None

from fedrecplus.deploy.server.collect import Link
from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.deployment import (
    begin,
    export,
    go_on,
    has_run,
    journal_of,
    run_of,
)
from fedrecplus.deploy.server.figures import RunFigures, figures_of
from fedrecplus.deploy.server.lease import Lease, LeaseLost
from fedrecplus.deploy.server.published import ModelOnServer, PublishedModels
from fedrecplus.deploy.server.rounds import serve
from fedrecplus.deploy.server.stored_run import CoordinatedRun, StoredRun
from fedrecplus.deploy.server.terms import Deployment, most_persons

__all__ = [
    "CoordinatedRun", "Database", "Deployment", "Lease", "LeaseLost", "Link", "ModelOnServer", "PublishedModels",
    "RunFigures", "StoredRun", "begin", "export", "figures_of", "go_on", "has_run", "journal_of", "most_persons",
    "run_of", "serve",
]  # fmt: skip
