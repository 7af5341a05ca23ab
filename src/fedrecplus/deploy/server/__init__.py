"""The server's side: rounds over a network, refusals, the catalogue, the run folder. Knows only the wire."""

from fedrecplus.deploy.server.catalogue import (
    FEWEST, ITEMS, catalogue_of, published_catalogue, read_catalogue, write_catalogue,
)  # fmt: skip
from fedrecplus.deploy.server.collect import Link
from fedrecplus.deploy.server.deployment import DEPLOYMENT, Deployment, begin, go_on
from fedrecplus.deploy.server.journal import JOURNAL, LOG, PROGRESS, Journal, is_served, only_server_of
from fedrecplus.deploy.server.rounds import serve

__all__ = [
    "DEPLOYMENT", "FEWEST", "ITEMS", "JOURNAL", "LOG", "PROGRESS", "Deployment", "Journal", "Link", "begin",
    "catalogue_of", "go_on", "is_served", "only_server_of", "published_catalogue", "read_catalogue", "serve",
    "write_catalogue",
]  # fmt: skip
