"""Flower is an extra: it brings 200 MB that a simulation doesn't need."""

from __future__ import annotations

import importlib.util

from fedrecplus.errors import UserError


def require_flower() -> None:
    """Raise an error that names the extra, unless Flower is installed."""
    if importlib.util.find_spec("flwr") is None:
        raise UserError("a deployment needs Flower, which isn't installed", "pip install 'fedrecplus[deploy]'")
