"""The server's side: rounds over a network, refusals, the run folder. Knows only the wire."""

from fedrecplus.deploy.server.collect import Link
from fedrecplus.deploy.server.deployment import DEPLOYMENT, Deployment, begin, go_on
from fedrecplus.deploy.server.journal import JOURNAL, LOG, PROGRESS, Journal, is_served, only_server_of
from fedrecplus.deploy.server.rounds import serve

__all__ = [
    "DEPLOYMENT", "JOURNAL", "LOG", "PROGRESS", "Deployment", "Journal", "Link", "begin", "go_on", "is_served",
    "only_server_of", "serve",
]  # fmt: skip
