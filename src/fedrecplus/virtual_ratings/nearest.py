"""The client's own rating of the most similar item: on the scale by itself, and the most private of the rules."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast
from fedrecplus.similarity import similarity


def fill(items: NDArray[np.int64], device: Device, broadcast: Broadcast, settings: Config) -> NDArray[np.float64]:
    """r'_j = r_i for the rated i with the greatest cosine; ties go to the lower item number.

    Paper: Section "Feature similarity for pseudo items"
    """
    likeness = similarity(broadcast.features[items], broadcast.features[device.items])
    return np.asarray(device.ratings[likeness.argmax(axis=1)])
