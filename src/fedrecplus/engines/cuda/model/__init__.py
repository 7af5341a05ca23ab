"""CUDA kernels of the parts in ``parts/model``, each under its part's name."""
