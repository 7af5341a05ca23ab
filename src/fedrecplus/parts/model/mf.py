"""Matrix factorisation by gradient steps, r̂ = U·V: the model of the paper, to the letter.

The code also serves ``biased-mf``: V then has a column for the item bias, and U two more, a one that meets it and the
user bias, which stays on the device. In ``mf`` U's last column, the user bias, stays zero.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import keys, normal, subkey, uniform
from fedrecplus.settings import Annotated, number, text
from fedrecplus.settings import Settings as _Settings

Array = NDArray[np.float64]
Items = NDArray[np.int64]
BIASES = False


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, length of the latent feature vectors")] = 20
    regularisation: Annotated[float, number(0, 1e6, "λ, L2 regularisation of U and of the rows of V")] = 0.02
    learning_rate: Annotated[float, number(1e-12, 1e6, "η_L, local step size")] = 0.5
    learning_rate_decay: Annotated[float, number(1e-6, 10, "factor on the local step size after each round")] = 1.0
    local_epochs: Annotated[int, number(1, 10_000, "K, passes over the client's rows in a round")] = 1
    batch_size: Annotated[int, number(0, 10**9, "B, rows per local step; 0: all at once")] = 0
    user_step: Annotated[
        Literal["all", "rated"],
        text("rows of the U step: rated and pseudo (paper), or rated alone (more accurate, and gives the set away)"),
    ] = "all"
    init: Annotated[
        Literal["constant", "normal", "uniform"],
        text("start values: constant makes every first prediction init_rating, the others begin around zero"),
    ] = "constant"
    init_rating: Annotated[float, number(0, 100, "what a constant start predicts, on the standard scale 1–5")] = 3.5
    init_scale: Annotated[float, number(0, 1e3, "standard deviation (uniform: half-width) of the start's noise")] = 0.1


def tables(settings: Settings, biases: bool = BIASES) -> dict[str, int]:
    """The shared tables and their columns."""
    return {"V": settings.factors + biases}


def user_columns(settings: Settings, biases: bool = BIASES) -> int:
    """Numbers that a device keeps between rounds."""
    return settings.factors + biases + 1


def trained_columns(settings: Settings, biases: bool = BIASES) -> Array:
    """1 for the columns of U that training moves, 0 for the others."""
    return np.array([1.0] * settings.factors + [0.0] * biases + [float(biases)])


def global_mean(public: PublicItems, biases: bool = BIASES) -> float:
    """What predictions start from: zero in the paper, the mean of all ratings in a model with biases."""
    return public.mean if biases else 0.0


def start_items(seed: int, items: int, settings: Settings, public: PublicItems, biases: bool = BIASES) -> Array:
    """The item table before training."""
    columns = settings.factors + biases
    return _start(subkey(seed, "start-V"), np.arange(items), columns, settings, global_mean(public, biases))


def start_users(seed: int, clients: Items, settings: Settings, public: PublicItems, biases: bool = BIASES) -> Array:
    """Some clients' factors before training."""
    columns = user_columns(settings, biases)
    table = _start(subkey(seed, "start-U"), clients, columns, settings, global_mean(public, biases))
    if biases:
        table[:, settings.factors] = 1.0
    return table


def _start(key: int, rows: Items, columns: int, settings: Settings, mean: float) -> Array:
    """Start values of some rows: the same for a row whoever asks, and whatever other rows are asked for.

    A constant √(c/d) makes every first prediction c. Ours: near-zero starts sit on a plateau for tens of rounds.
    """
    factors = settings.factors
    cells = rows[:, None].astype(np.uint64) * np.uint64(factors) + np.arange(factors, dtype=np.uint64)
    noise = 2.0 * uniform(key, cells) - 1.0 if settings.init == "uniform" else normal(key, cells)
    constant = np.sqrt(max(settings.init_rating - mean, 0.0) / factors) if settings.init == "constant" else 0.0
    table = np.zeros((len(rows), columns))
    table[:, :factors] = constant + settings.init_scale * noise
    return table


def local_training(
    device: Device, rows: Rows, broadcast: Broadcast, settings: Settings, biases: bool = BIASES
) -> tuple[Array, Array]:
    """K epochs of a U step and a step on the client's copy of its rows of V; returns both as they are then.

    Paper: Algorithm 1, lines 4–7
    """
    U, V = device.U, broadcast.V[rows.items].astype(np.float64)
    targets = rows.ratings - global_mean(broadcast.public, biases)
    rate, trained = local_rate(settings, broadcast.round), trained_columns(settings, biases)
    used = rows.rated | (settings.user_step == "all")
    for _ in range(settings.local_epochs):
        for batch in _batches(device, rows, broadcast, settings):
            users = batch[used[batch]]
            if len(users):
                U = user_step(U, V[users], targets[users], rate, settings.regularisation, trained)
            V[batch] = item_step(U, V[batch], targets[batch], rate, settings.regularisation)
    return U, V


def local_rate(settings: Settings, round_number: int) -> float:
    """The local step size of a round."""
    return settings.learning_rate * settings.learning_rate_decay**round_number


def _batches(device: Device, rows: Rows, broadcast: Broadcast, settings: Settings) -> list[Items]:
    """Row numbers, all at once or in batches of B in an order that is new each round."""
    size = settings.batch_size
    if size == 0:
        return [np.arange(len(rows.items))]
    order = np.argsort(keys(subkey(device.secret, "batches", broadcast.round), rows.items), kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


def errors(U: Array, V: Array, targets: Array) -> Array:
    """e = r − r̂, for ratings less the global mean. Paper: Eq. (1), Section "Problem Setup" """
    return np.asarray(targets - V @ U[:-1] - U[-1])


def user_step(U: Array, V: Array, targets: Array, rate: float, regularisation: float, trained: Array) -> Array:
    """U ← U − η_L (λ U − mean of e_ui V_i over the rows). Paper: Eq. (4), Algorithm 1, line 5"""
    e = errors(U, V, targets)
    pull = np.append(e @ V, e.sum()) / len(e)
    return np.asarray(U - rate * trained * (regularisation * U - pull))


def item_step(U: Array, V: Array, targets: Array, rate: float, regularisation: float) -> Array:
    """V_i ← V_i − η_L g_ui, g_ui = λ V_i − e_ui U, for all rows. Paper: Eq. (3), (6), Algorithm 1, lines 6–7"""
    e = errors(U, V, targets)
    return np.asarray(V - rate * (regularisation * V - np.outer(e, U[:-1])))


def predict(
    items: Items, device: Device, broadcast: Broadcast, settings: Settings, steps: int = 0, biases: bool = BIASES
) -> Array:
    """The client's own predictions, after ``steps`` more U steps over its rated rows with V fixed."""
    U, rated = device.U, broadcast.V[device.items].astype(np.float64)
    mean = global_mean(broadcast.public, biases)
    rate, trained = local_rate(settings, broadcast.round), trained_columns(settings, biases)
    for _ in range(steps):
        U = user_step(U, rated, device.ratings - mean, rate, settings.regularisation, trained)
    return mean - errors(U, broadcast.V[items].astype(np.float64), np.zeros(len(items)))


def item_columns(V: NDArray[np.float64], public: PublicItems, settings: Settings, biases: bool = BIASES) -> Array:
    """X = (V, 1), and with biases (V, μ + b_i, 1): what a device multiplies by its own weights."""
    X = np.hstack([V, np.ones((len(V), 1), dtype=V.dtype)])
    if biases:
        X[:, settings.factors] += public.mean
    return X


def user_weights(U: Array, X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems) -> Array:
    """The weights that predictions use: U itself."""
    return U


def fold_in(
    X: Array, items: Items, ratings: Array, settings: Settings, public: PublicItems, biases: bool = BIASES
) -> Array:
    """argmin_U mean (r − X·U)² + λ‖U‖² over the rated rows: where the U steps come to rest.

    It needs public rows and the person's ratings, nothing else: how a newcomer gets factors without a round.
    """
    free = trained_columns(settings, biases).astype(bool)
    U = np.zeros(X.shape[1])
    if biases:
        U[settings.factors] = 1.0
    A, targets = X[items][:, free], ratings - X[items] @ U
    gram = A.T @ A + max(settings.regularisation * len(items), 1e-9) * np.eye(A.shape[1])
    U[free] = np.linalg.solve(gram, A.T @ targets)
    return U


def attacker(settings: Settings, biases: bool = BIASES) -> OfModel:
    """What an attacker knows of U: it meets V's columns; the weight of an item bias is 1, a user bias may be."""
    known = {settings.factors: 1.0} if biases else {settings.factors: 0.0}
    return OfModel(slice(0, settings.factors + biases), known, "by steps", settings.user_step)


def gradient_rows(delta: Array, items: Items, used: Array, broadcast: Broadcast, settings: Settings) -> Array:
    """Δ/(K η_L) + λV: for K = 1 it is e_i·U, row by row; for more epochs about their mean. Paper: Eq. (6)"""
    rate = settings.local_epochs * local_rate(settings, broadcast.round)
    A: Array = delta / rate + settings.regularisation * broadcast.V[items]
    return A
