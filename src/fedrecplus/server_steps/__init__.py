"""Rules that move V by the aggregate: a file is a choice."""
