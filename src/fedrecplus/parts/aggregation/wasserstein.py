"""Clients whose update is close to the global one, in Wasserstein distance, count more."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, namespace, remember_last, rows_of
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import ByDistance, WeightedAggregation, WeightSettings
from fedrecplus.parts.aggregation._covariance import full_trace, update_variance
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, number, text

SMALLEST = 1e-12
"""distances below this count as this: a client may agree exactly"""
LARGEST = 32.0
"""weight of a client that weighs itself, at most: a step that is nearer than that counts as this near"""


class Settings(WeightSettings):
    """Options of the rule."""

    temperature: Annotated[float, number(0, 3, "τ, weights are D to the power −τ; 1 is the paper, 0 is uniform")] = 1.0
    bound: Annotated[
        float, number(0, 1e9, "D is at least this share of the global step's size: bounds the weights")
    ] = 0.1
    rows: Annotated[
        Literal["table", "own", "mean-own"],
        text("rows that D runs over: the whole table, the client's own, or the mean per own row"),
    ] = "mean-own"
    global_step: Annotated[
        Literal["last", "mean"],
        text("what D is the distance to: the step applied last round, or this round's uniform mean"),
    ] = "last"
    covariance: Annotated[
        Literal["none", "diagonal", "full"],
        text("leave tr(M²) out (large batches), or estimate it; full: small tables"),
    ] = "none"
    batch_size: Annotated[int, number(0, 10**9, "B of the local steps, for the covariance; 0: all rows")] = 0


class Wasserstein(WeightedAggregation[Settings]):
    """w = D^(−τ)."""

    NEEDS = frozenset({"last_step"})

    def check_with(self, config: Any) -> None:
        """Refuse what can't be together with these options."""
        if config.aggregation.weighs_on_client and self.against_mean:
            raise UserError(
                "a client can't weigh itself against this round's mean, which it doesn't know",
                "set aggregation.global_step=last or aggregation.weigh_on=server",
            )
        own, local = self.settings.batch_size, config.model.batch_size
        if self.settings.covariance != "none" and own != local:
            raise UserError(
                f"aggregation.batch_size = {own} is not the model's, {local}", f"set aggregation.batch_size={local}"
            )

    @property
    def covariance_kind(self) -> str:
        """Which covariance of the clients' updates the distances need."""
        return self.settings.covariance

    @property
    def over_table(self) -> bool:
        """Where distances run over all rows."""
        return self.settings.rows == "table"

    @property
    def against_mean(self) -> bool:
        """Whether distances are measured to this round's mean, so that uploads must be seen twice."""
        return self.settings.global_step == "mean"

    @property
    def largest_weight(self) -> float:
        """No honest client has a greater one."""
        return float(SMALLEST**-self.settings.temperature)

    def weight(self, items: Items, delta: Array, broadcast: Broadcast) -> Any:
        """w = D^(−τ), D the squared distance between the client's update and the global step.

        With τ = 1 the normalised weights are p*.

        Paper: Eq. (19), and without tr(M²) its limit for large batches, Eq. (23)
        Deviation: the temperature, and a lower bound of D, since an update that agrees exactly has D = 0; where clients
        weigh themselves, a factor that cancels (``public_scale``).
        """
        form, step = self.by_distance(broadcast), broadcast.last_step
        least = form.bound * _over_rows(items, rows_of(step_squares(step), items), step, self.settings)
        D = distance(items, delta, step, broadcast.last_covariance, self.settings)
        xp = namespace(least)
        return form.unit * xp.maximum(xp.maximum(D, least), form.smallest) ** -form.temperature

    def by_distance(self, broadcast: Broadcast) -> ByDistance:
        """As the settings say, in a unit that everybody knows. Ours: see ``public_scale``."""
        unit, smallest = public_scale(broadcast.last_step, self.settings)
        return ByDistance(self.settings.rows, self.settings.temperature, self.settings.bound, smallest, unit)


def public_scale(last_step: NDArray[Any], settings: Settings) -> tuple[float, float]:
    """Factor on the weights, and the least D, where clients weigh themselves; both follow from what everybody was told.

    The factor cancels in every weighted mean. It is (mean ‖step_i‖²)^τ, so that a weight says how near a client is
    beside how far a row moved, whatever the size of steps. Where a number of the step exceeds 1, it is over that one,
    so that w·Δ stays small as well. Before the first step nothing tells the size of updates: the factor is 1.

    Ours: integers modulo 2³² need a bound on weights that no honest client exceeds.
    """
    tau, squares = settings.temperature, step_squares(last_step)
    xp = namespace(squares)
    size = float(xp.sum(squares) if settings.rows == "table" else xp.mean(squares))
    if settings.weigh_on != "client" or tau == 0.0 or not 0.0 < size < np.inf:
        return 1.0, SMALLEST
    nearest = max(size * LARGEST ** (-1.0 / tau), float(np.finfo(np.float64).tiny))
    return size**tau / max(1.0, float(xp.max(xp.abs(last_step)))), nearest


def distance(items: Items, delta: Array, step: Array, covariance: Array, settings: Settings) -> Any:
    """D = ‖Kη_L μ_u − η μ_g‖² + tr(M²); the client's whole update Δ is Kη_L μ_u, the applied step is η μ_g.

    Paper: Eq. (18)
    """
    squares = _squares(delta - rows_of(step, items))
    if settings.covariance == "none":
        return _over_rows(items, squares, step, settings)
    table = step_squares(step).copy()
    table[items] = squares
    if settings.covariance == "full":
        table += full_trace(items, delta, covariance, settings.batch_size)
    else:
        variance = np.zeros_like(step)
        variance[items] = update_variance(delta, settings.batch_size)
        table += _squares(np.sqrt(variance) - np.sqrt(covariance))
    return table.sum() if settings.rows == "table" else _over_rows(items, table[items], step, settings)


def _over_rows(items: Items, own_squares: Array, step: Array, settings: Settings) -> Any:
    """A sum over the rows that the settings name: own ones (…, n) and, of the whole table, the step's other rows.

    Ours: the paper leaves open which rows a sparse update has.
    """
    xp, present = namespace(own_squares), items >= 0
    total = xp.sum(xp.where(present, own_squares, 0.0), axis=-1)
    if settings.rows == "own":
        return total
    if settings.rows == "mean-own":
        return total / xp.clip(xp.sum(present, axis=-1), 1, None)
    squares = step_squares(step)
    return total + (xp.sum(squares) - xp.sum(rows_of(squares, items), axis=-1))


@remember_last
def step_squares(step: NDArray[Any]) -> Array:
    """‖step_i‖² of every row, once for all clients of a round."""
    return _squares(step)


def _squares(rows: NDArray[Any]) -> Array:
    xp = namespace(rows)
    return xp.sum(xp.astype(rows, xp.float64) ** 2, axis=-1)  # type: ignore[no-any-return]
