"""How much each client's update counts, or how single updates are joined."""

from fedrecplus.parts.aggregation._covariance import check_full, update_covariance, update_variance
from fedrecplus.parts.aggregation._weights import WeightSettings

__all__ = ["WeightSettings", "check_full", "update_covariance", "update_variance"]
