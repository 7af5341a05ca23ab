"""What people open in a browser: the report of runs and studies, the person's page, the service."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.browser import LOOPBACK as LOOPBACK, is_everywhere as is_everywhere
    from fedrecplus.web.device_page import serve_page as serve_page
    from fedrecplus.web.local_server import FolderPages as FolderPages, PageServer as PageServer

lazily(__name__)
