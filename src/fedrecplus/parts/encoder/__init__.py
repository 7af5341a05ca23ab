"""Features of items, by whose cosine pseudo items and virtual ratings are chosen."""
