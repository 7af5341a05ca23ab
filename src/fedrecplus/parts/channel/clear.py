"""Uploads as they are: the server sees each of them."""

from __future__ import annotations

VIEW = "uploads"
