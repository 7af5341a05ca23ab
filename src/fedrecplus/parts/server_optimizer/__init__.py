"""How the server moves V by the aggregate. After: Reddi et al. 2021 (FedOpt)"""

from fedrecplus.parts.server_optimizer._rate import RateSettings, rate

__all__ = ["RateSettings", "rate"]
