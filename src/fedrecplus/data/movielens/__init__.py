"""MovieLens by name: download, check, parse and cache."""
