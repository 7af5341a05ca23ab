"""What one peer, and all of them together, may ask of the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that hold whatever is sent."""

    body: int = 256 * 1024
    """bytes of a request's body at most"""
    rate: float = 50.0
    """requests a second that one peer may make for long; 0 for no bound"""
    burst: float = 100.0
    """requests that it may make at once"""
    peers: int = 10_000
    """peers that are remembered; the one that asked longest ago goes first"""
    connections: int = 200
    """open at a time, of all peers"""
    header_seconds: float = 10.0
    """from the first byte of a request, or from connecting, to the end of its header"""
    request_seconds: float = 30.0
    """from the end of the header to the last byte of the answer"""
    idle_seconds: float = 15.0
    """that a connection may stay open between two requests"""
    ratings: int = 5_000
    """in one request"""
    longest_list: int = 1_000
