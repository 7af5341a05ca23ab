"""The page that an invitation opens: files of a folder, the same for everybody."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_HEADERS = {
    "content-security-policy": "frame-ancestors 'none'",  # the rest is in the page itself, as it is in a copy elsewhere
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class PageFiles(StaticFiles):
    """The page's files, which browsers ask for anew: an ETag says that nothing changed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file."""
        response = await super().get_response(path, scope)
        response.headers.update(_HEADERS)
        return response
