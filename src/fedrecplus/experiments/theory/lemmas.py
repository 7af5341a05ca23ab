"""The lemmas and the Wasserstein bound, a number each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.experiments.comparison import Table
from fedrecplus.experiments.theory.constants import Constants, Look
from fedrecplus.experiments.theory.gradients import GradientRows
from fedrecplus.parts.aggregation import update_variance
from fedrecplus.protocol import Upload
from fedrecplus.randomness import keys, normal, subkey

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
DRAWS, SOME_CLIENTS = 2_000, 12


def gaussian(rows: GradientRows, seed: int) -> dict[str, Any]:
    """How far a batch's gradient is from a Gaussian, by batch size: Kolmogorov's distance along random directions.

    Batches are drawn with replacement, as the lemma has them. ``at_best`` is the distance that as many truly normal
    draws show; ``slope`` is that of the logarithms, −½ where the central limit theorem has set in.

    Paper: Lemma 1
    """
    order = np.argsort(-rows.count, kind="stable")
    able = order[: max(1, len(order) // 2)]
    chosen = able[np.linspace(0, len(able) - 1, min(SOME_CLIENTS, len(able))).astype(int)]
    distances = [[_distance(rows, int(client), size, seed) for client in chosen] for size in BATCHES]
    means = [float(np.mean(each)) for each in distances]
    at_best = float(np.mean([_kolmogorov(normal(subkey(seed, "at-best", n), np.arange(DRAWS))) for n in range(20)]))
    above = [(size, value) for size, value in zip(BATCHES, means, strict=True) if value > 1.5 * at_best]
    slope = None
    if len(above) > 2:
        logs = np.log(np.array(above))
        slope = float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])
    return {
        "batch": list(BATCHES), "distance": means, "at_best": at_best, "slope": slope,
        "clients": len(chosen), "draws": DRAWS,
    }  # fmt: skip


def _distance(rows: GradientRows, client: int, size: int, seed: int) -> float:
    gradient = rows.gradient[rows.client == client]
    direction = normal(subkey(seed, "direction", client), np.arange(gradient.size)).reshape(gradient.shape)
    along = len(gradient) * (gradient * direction).sum(axis=1)
    draws = keys(subkey(seed, "batch", client, size), np.arange(DRAWS * size)) % np.uint64(len(along))
    return _kolmogorov(along[draws.astype(np.int64)].reshape(DRAWS, size).mean(axis=1))


def _kolmogorov(values: Array) -> float:
    deviation = values.std()
    return float(stats.kstest((values - values.mean()) / deviation, "norm").statistic) if deviation > 0 else 1.0


def wasserstein_bound(uploads: Sequence[Upload], p: Array, shape: tuple[int, ...], batch_size: int) -> dict[str, float]:
    """D against m Σ p_u² W_u, squared distances between Gaussians with the updates' means and diagonal covariances.

    ``best`` is the right side at p* ∝ 1/W_u, its smallest value. A ratio above one is possible: the proof couples every
    client with one global draw and then takes the clients as independent, whose mean has less variance than each.

    Paper: the bound is Eq. (14), its smallest value (19)
    """

    def moments(weights: Array, variance_weights: Array) -> tuple[Array, Array]:
        mean, variance = np.zeros(shape), np.zeros(shape)
        for upload, weight, of_variance in zip(uploads, weights, variance_weights, strict=True):
            mean[upload.items] += weight * upload.delta
            variance[upload.items] += of_variance * update_variance(upload.delta, batch_size)
        return mean, variance

    uniform = np.full(len(uploads), 1.0 / len(uploads))
    mu, variance = moments(uniform, uniform)
    W = np.array([_own_distance(upload, mu, variance, batch_size) for upload in uploads])
    mean, joint = moments(p, p**2)
    left = float(((mean - mu) ** 2).sum() + ((np.sqrt(joint) - np.sqrt(variance)) ** 2).sum())
    right, best = len(W) * float((p**2 * W).sum()), len(W) / float((1.0 / W).sum())
    return {"distance": left, "bound": right, "ratio": left / right, "best": best, "uniform": float(W.mean())}


def _own_distance(upload: Upload, mu: Array, variance: Array, batch_size: int) -> float:
    """‖Δ_u − μ‖² + tr M² over the whole table, from the client's own rows and the table's sums."""
    rows, delta, own = upload.items, upload.delta, update_variance(upload.delta, batch_size)
    means = (mu**2).sum() - (mu[rows] ** 2).sum() + ((delta - mu[rows]) ** 2).sum()
    roots = variance.sum() - variance[rows].sum() + ((np.sqrt(own) - np.sqrt(variance[rows])) ** 2).sum()
    return float(means + roots)


def gradient_distance(looks: Sequence[Look], k: Constants) -> dict[str, float]:
    """‖∇f − ∇f̃‖² against χ²(A²‖∇f̃‖² + σ_G²), at the look where the bound is tightest. Paper: Lemma 2"""
    rights = [each.chi_wp * (k.A**2 * each.surrogate + k.sigma_G**2) for each in looks]
    pairs = [(each.distance, right) for each, right in zip(looks, rights, strict=True)]
    left, right = max(pairs, key=lambda pair: pair[0] / pair[1] if pair[1] > 0 else 0.0)
    return {"measured": left, "bound": right, "ratio": left / right if right > 0 else 0.0}


def local_updates(looks: Sequence[Look], k: Constants, config: Config) -> dict[str, Any]:
    """Mean ‖x_K − x‖² against 5K(…) + 30K²(A² + 1)η_L²‖∇f‖², at the look where the bound is tightest. Paper: Lemma 3"""
    rate, K = config.model.settings.learning_rate, config.model.settings.local_epochs
    noise = k.sigma_L**2 + 6 * K * (1.0 - k.alpha) ** 2 * k.rho**2 + 6 * K * k.sigma_G**2
    rights = [5 * K * rate**2 * noise + 30 * K**2 * (k.A**2 + 1.0) * rate**2 * each.gradient for each in looks]
    pairs = [(each.moved, right) for each, right in zip(looks, rights, strict=True)]
    left, right = max(pairs, key=lambda pair: pair[0] / pair[1])
    return {"measured": left, "bound": right, "ratio": left / right, "applies": rate <= 1.0 / (8.0 * k.L * K)}


_NAMES = {
    "wasserstein": "Wasserstein bound: D ≤ m Σ p²W",
    "gradient_distance": "gradient distance: ‖∇f − ∇f̃‖²",
    "local_updates": "local updates: mean ‖x_K − x‖²",
}


def lemmas_table(lemmas: dict[str, Any]) -> Table:
    """From the JSON: a row per lemma: what was measured, what the lemma allows, and whether that holds."""
    gaussian = lemmas["gaussian"]
    first, last = (f"{gaussian['distance'][end]:.3f} (B={gaussian['batch'][end]})" for end in (0, -1))
    slope = "too few points for a slope" if gaussian["slope"] is None else f"slope {gaussian['slope']:.2f} in log B"
    normal_draws = f"{gaussian['at_best']:.3f} for normal draws"
    gaussian_row = ["Gaussian updates: Kolmogorov distance", f"{first} to {last}", normal_draws, slope]
    rows = [*(_row(name, lemmas[key]) for key, name in _NAMES.items()), gaussian_row]
    return ("lemma", "measured", "bound", "measured/bound"), rows


def _row(name: str, figures: dict[str, Any] | None) -> list[str]:
    if figures is None:
        return [name, "", "", "no weights, so nothing to bound"]
    note = "" if figures.get("applies", True) else " (its step-size condition does not hold)"
    note += ", does not hold" if figures["ratio"] > 1.0 else ""
    measured = figures.get("measured", figures.get("distance"))
    return [name, f"{measured:.4g}", f"{figures['bound']:.4g}", f"{figures['ratio']:.3g}{note}"]
