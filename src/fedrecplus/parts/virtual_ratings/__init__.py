"""Which ratings pseudo items get."""

from fedrecplus.parts.virtual_ratings._scale import FillSettings, Predict, kept_round, put_on_scale

__all__ = ["FillSettings", "Predict", "kept_round", "put_on_scale"]
