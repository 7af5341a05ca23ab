"""Many trainings: comparison, cross-validation, tuning, and the figures that others published."""
