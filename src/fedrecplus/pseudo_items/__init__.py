"""Rules that choose which unrated items a client uploads too: a file is a choice."""
