"""CUDA kernels of the parts in ``parts/pseudo_items``, each under its part's name."""
