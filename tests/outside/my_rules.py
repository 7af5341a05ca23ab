"""Parts as somebody outside would write them, each a file with an option of its own: texts, to be written to files."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "my_pseudo_items": '''
"""The unrated items with the highest numbers, every so many of them."""
import numpy as np
from fedrecplus.parts.pseudo_items import SetSettings
from fedrecplus.settings import Annotated, number

class Settings(SetSettings):
    """Options."""
    stride: Annotated[int, number(1, 50, "take each of so many")] = 2

def select(count, device, broadcast, settings):
    """Ours: a test."""
    unrated = np.setdiff1d(np.arange(len(broadcast.V)), device.items)[::-1]
    order = np.argsort(np.arange(len(unrated)) % settings.stride, kind="stable")
    return np.sort(unrated[order][:count])
''',
    "my_virtual_ratings": '''
"""The client's highest rating, a little lower for items with high numbers."""
import numpy as np
from fedrecplus.parts.virtual_ratings import FillSettings
from fedrecplus.settings import Annotated, number

class Settings(FillSettings):
    """Options."""
    slope: Annotated[float, number(0, 1, "lower by so much per item number")] = 0.01

def fill(items, device, broadcast, predict, settings):
    """Ours: a test."""
    return np.full(len(items), device.ratings.max()) - settings.slope * items
''',
    "my_encoder": '''
"""The item factors to some power."""
import numpy as np
from fedrecplus.settings import Annotated, Settings as Base, number

class Settings(Base):
    """Options."""
    power: Annotated[int, number(1, 5, "of every number")] = 2

def encode(V, public, settings):
    """Ours: a test."""
    return V**settings.power
''',
    "my_aggregation": '''
"""Clients with few rows count more."""
from fedrecplus.parts.aggregation import WeightSettings
from fedrecplus.settings import Annotated, number

class Settings(WeightSettings):
    """Options."""
    power: Annotated[float, number(0, 2, "of the number of rows")] = 0.5

def weight(items, delta, broadcast, settings):
    """Ours: a test."""
    return float(len(items)) ** -settings.power
''',
    "my_server_optimizer": '''
"""The sign of the aggregate, which fades."""
import numpy as np
from fedrecplus.parts.server_optimizer import RateSettings, rate
from fedrecplus.settings import Annotated, number

MOMENTS = 1

class Settings(RateSettings):
    """Options."""
    learning_rate: Annotated[float, number(1e-12, 1e9, "global step size")] = 0.02
    fade: Annotated[float, number(0, 1, "share of the last size that is kept")] = 0.5

def step(aggregate, moments, settings, round_number):
    """Ours: a test."""
    size = settings.fade * moments[0] + np.abs(aggregate)
    move = np.sign(aggregate) * size / (size + 1)
    return (rate(settings, round_number) * move).astype(aggregate.dtype), [size]
''',
    "my_channel": '''
"""Rows are rounded before they leave the device."""
from dataclasses import replace
import numpy as np
from fedrecplus.settings import Annotated, Settings as Base, number

VIEW = "uploads"

class Settings(Base):
    """Options."""
    decimals: Annotated[int, number(0, 12, "digits that are kept")] = 3

def protect(upload, secret, broadcast, settings):
    """Ours: a test."""
    return replace(upload, delta=np.round(upload.delta, settings.decimals))
''',
    "my_model": '''
"""An item's damped mean, learnt in rounds, beside the client's own mean: no factors at all."""
import numpy as np
from fedrecplus.settings import Annotated, Settings as Base, number

class Settings(Base):
    """Options."""
    learning_rate: Annotated[float, number(1e-12, 10, "step of an item's deviation")] = 0.5
    pull: Annotated[float, number(0, 1e3, "ratings' worth of zero in a client's own mean")] = 1.0

def user_columns(settings):
    return 1

def start_items(seed, items, settings, public):
    return np.zeros((items, 1))

def start_users(seed, clients, settings, public):
    return np.full((len(clients), 1), public.mean)

def item_columns(V, public, settings):
    return np.hstack([np.ones((len(V), 1), dtype=V.dtype), V])

def fold_in(X, items, ratings, settings, public):
    own = ((ratings - X[items, 1]).sum() + settings.pull * public.mean) / (len(items) + settings.pull + 1e-9)
    return np.array([own, 1.0])

def user_weights(U, X, items, ratings, settings, public):
    return np.array([U[0], 1.0])

def predict(items, device, broadcast, settings, steps=0):
    return device.U[0] + broadcast.V[items, 0]

def local_training(device, rows, broadcast, settings):
    """Ours: a test."""
    V = broadcast.V[rows.items].astype(float)
    rated = rows.ratings[rows.rated] - V[rows.rated, 0]
    own = (rated.sum() + settings.pull * broadcast.public.mean) / (len(rated) + settings.pull)
    return np.array([own]), V + settings.learning_rate * (rows.ratings[:, None] - own - V)
''',
}
OPTIONS = {
    "my_pseudo_items": "stride=3",
    "my_virtual_ratings": "slope=0.02",
    "my_encoder": "power=3",
    "my_aggregation": "power=1",
    "my_server_optimizer": "fade=0.25",
    "my_channel": "decimals=2",
    "my_model": "pull=4",
}
"""each file's own option, with another value than its default"""


def write_all(folder: Path, package: str = "my_rules") -> Path:
    """All files as one package in a folder."""
    home = folder / package
    home.mkdir()
    (home / "__init__.py").write_text("")
    for name, text in FILES.items():
        (home / f"{name}.py").write_text(text.lstrip(), encoding="utf-8")
    return home
