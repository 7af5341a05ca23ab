"""CUDA kernels of the parts in ``parts/virtual_ratings``, each under its part's name."""
