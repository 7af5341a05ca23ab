"""Rules that join the uploads of a round: a file is a choice."""
