"""The operator's page on 127.0.0.1: a server's last run as it goes, for who has the link."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.operator_page.pages import page_server as page_server

lazily(__name__)
