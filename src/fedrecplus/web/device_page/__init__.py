"""The person's page over their device's own store, on 127.0.0.1 and for whoever has the link."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.device_page.server import serve_page as serve_page

lazily(__name__)
