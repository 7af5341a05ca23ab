"""Speed and memory, as ratios from one run: ``make bench``."""
