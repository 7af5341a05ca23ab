"""Tasks and their log"""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """To this layout."""
    op.add_column("runs", sa.Column("told", sa.LargeBinary(), nullable=True))
    op.create_table(
        "log",
        sa.Column("task", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("leaf", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("task", "number"),
    )
    op.create_table(
        "signing_keys",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def downgrade() -> None:
    """Back to the one before."""
    op.drop_table("signing_keys")
    op.drop_table("log")
    op.drop_column("runs", "told")
