"""Flower, met nowhere else; ``private.py`` lists every place where this reaches into its private parts."""
