"""Alembic's entry: it runs the versions over the database that ``Database.upgrade`` hands in."""

from alembic import context
from sqlalchemy import text

from fedrecplus.deploy.server.schema import metadata

database = context.config.attributes["database"]
with database.changing() as connection:
    if not database.is_sqlite:  # SQLite's transaction is the only one anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(7163)"))
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    context.run_migrations()
