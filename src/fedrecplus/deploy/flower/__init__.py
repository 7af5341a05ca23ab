"""Flower, met nowhere else: its messages and grid, the apps, and its three programs as modules to run.

``private.py`` lists every place where this reaches into Flower's private parts.
"""
