"""Kernels of the parts in ``parts/channel``, each under its part's name."""
