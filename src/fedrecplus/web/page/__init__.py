"""The person's page: a static site that rates, recommends and shows what would leave, all in the browser."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.page.build import build_site as build_site
    from fedrecplus.web.page.bundle import SUMS as SUMS, write_bundle as write_bundle

lazily(__name__)
