"""Layouts of the database, by alembic."""
