"""Alembic's entry: it runs the versions over the database that ``Database.upgrade`` hands in."""

from typing import Any

from alembic import context
from sqlalchemy import text

from fedrecplus.deploy.server.schema import metadata


def run(database: Any) -> None:
    """All versions that a database lacks, in one transaction; others wait."""
    with database.changing() as connection:
        if not database.is_sqlite:  # SQLite's transaction is the only one anyway
            connection.execute(text("SELECT pg_advisory_xact_lock(7163)"))
        context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
        context.run_migrations()


if hasattr(context, "config"):  # alembic runs this file; whoever only imports it has no database
    run(context.config.attributes["database"])
