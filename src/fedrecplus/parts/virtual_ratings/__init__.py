"""Which ratings pseudo items get."""

from fedrecplus.parts.virtual_ratings._scale import TIE, FillSettings, Predict, kept_round, put_on_scale

__all__ = ["TIE", "FillSettings", "Predict", "kept_round", "put_on_scale"]
