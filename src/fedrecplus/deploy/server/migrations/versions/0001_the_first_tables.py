"""The first tables: the schema's own, as long as no release has written them down"""

from alembic import op

from fedrecplus.deploy.server.schema import metadata

revision, down_revision = "0001", None


def upgrade() -> None:
    """To this layout."""
    metadata.create_all(op.get_bind())
