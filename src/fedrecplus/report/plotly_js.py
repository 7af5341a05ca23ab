"""The drawing library, from its package, to be written into the page."""

from __future__ import annotations

import functools
import importlib

from fedrecplus.errors import UserError


@functools.cache
def plotly_js() -> str:
    """plotly.js as text; an error that names the extra where it isn't installed."""
    try:
        offline = importlib.import_module("plotly.offline")
    except ImportError:
        raise UserError("plots need plotly, which is not installed", "pip install 'fedrecplus[report]'") from None
    script: str = offline.get_plotlyjs()
    return script.replace("</script", "<\\/script")
