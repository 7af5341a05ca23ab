"""Names by which a node's owner, and nobody else, tells the app where the store is and what may be shared."""

STORE, SHARE_ERROR = "FEDRECPLUS_STORE", "FEDRECPLUS_SHARE_ERROR"
