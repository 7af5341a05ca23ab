"""One page of any runs and studies: self-contained, no network, light and dark, on paper too."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.report.build import page as page, page_of as page_of
    from fedrecplus.web.report.frontier import to_markdown as to_markdown
    from fedrecplus.web.report.inputs import gather as gather
    from fedrecplus.web.report.marked import renewed as renewed

lazily(__name__)
