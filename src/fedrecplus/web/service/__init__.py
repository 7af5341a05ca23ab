"""A model over HTTP, for clients that can't compute and pages that want the public table. Wants the extra ``serve``."""

from typing import TYPE_CHECKING

from fedrecplus.lazy import lazily

if TYPE_CHECKING:
    from fedrecplus.web.service.app import ServiceOptions as ServiceOptions
    from fedrecplus.web.service.limits import Limits as Limits
    from fedrecplus.web.service.run import (
        listen as listen,
        log_to_stderr as log_to_stderr,
        server_of as server_of,
    )
    from fedrecplus.web.service.serving import ModelSource as ModelSource

lazily(__name__)
