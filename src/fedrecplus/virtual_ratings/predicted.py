"""The model's own prediction: a pseudo item then pulls V nowhere but towards zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.model import predict
from fedrecplus.protocol import Broadcast


def fill(items: NDArray[np.int64], device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    """r' = U·V. After: Lin, Pan, Ming 2020 (FedRec), hybrid filling without its extra local steps."""
    return predict(device.U, broadcast.V[items], broadcast.mean)
