"""Ratings as Parquet files, some clients in each, so that nobody ever holds all of them."""
