"""Rules that rate pseudo items: a file is a choice."""
