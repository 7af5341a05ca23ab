"""Kernels of the parts in ``parts/aggregation``, each under its part's name."""
