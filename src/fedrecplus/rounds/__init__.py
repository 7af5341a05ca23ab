"""The two functions that are the paper: what a client does in a round, and what the server does."""

from fedrecplus.rounds.client import client_round
from fedrecplus.rounds.server import ServerState, broadcast, server_round

__all__ = ["ServerState", "broadcast", "client_round", "server_round"]
