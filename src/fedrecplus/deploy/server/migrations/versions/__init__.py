"""One file for each layout."""
