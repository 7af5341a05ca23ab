"""Matrix factorisation around a global mean, r̂ = μ + b_u + b_i + U·V. The user bias stays on the device.

After: Koren, Bell, Volinsky 2009
"""

from __future__ import annotations

from functools import partial

from fedrecplus.parts.model import mf

BIASES = True


class Settings(mf.Settings):
    """Options of the model."""


tables = partial(mf.tables, biases=BIASES)
user_columns = partial(mf.user_columns, biases=BIASES)
start_items = partial(mf.start_items, biases=BIASES)
start_users = partial(mf.start_users, biases=BIASES)
local_training = partial(mf.local_training, biases=BIASES)
predict = partial(mf.predict, biases=BIASES)
item_columns = partial(mf.item_columns, biases=BIASES)
user_weights = mf.user_weights
fold_in = partial(mf.fold_in, biases=BIASES)
attacker = partial(mf.attacker, biases=BIASES)
gradient_rows = mf.gradient_rows
global_mean = partial(mf.global_mean, biases=BIASES)
trained_columns = partial(mf.trained_columns, biases=BIASES)
local_rate = mf.local_rate
errors, user_step, item_step = mf.errors, mf.user_step, mf.item_step
