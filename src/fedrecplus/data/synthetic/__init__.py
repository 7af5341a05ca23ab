"""Ratings made up from a low-rank truth."""
