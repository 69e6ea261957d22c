"""``open-catalog``: a published catalog of 37 tools with its four callers, to audit; nothing of it is connected."""
