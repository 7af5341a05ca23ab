"""A model over HTTP, for clients that can't compute and pages that want the public table. Wants the extra ``serve``."""
