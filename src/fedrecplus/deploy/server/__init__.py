"""The server's side: rounds over a network, refusals, the run folder. Knows only the wire."""

from fedrecplus.deploy.server.app_process import process_began
from fedrecplus.deploy.server.collect import Link
from fedrecplus.deploy.server.deployment import LOG, Deployment, begin, go_on, is_served, only_server_of
from fedrecplus.deploy.server.figures import RunFigures, figures_of
from fedrecplus.deploy.server.journal import Journal
from fedrecplus.deploy.server.rounds import serve

__all__ = [
    "LOG", "Deployment", "Journal", "Link", "RunFigures", "begin", "figures_of", "go_on", "is_served",
    "only_server_of", "process_began", "serve",
]  # fmt: skip
