"""Ratings from a file of the user's own."""
