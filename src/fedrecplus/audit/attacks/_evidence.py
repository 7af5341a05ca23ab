"""What a read upload says about which of its rows are real, in one number per row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks._reading import Reading, of_model, rated_share
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.audit.transcript import Transcript

_CAP = 8.0
_MEMBER = 8.0
"""log odds between a row that w was certainly fitted to and one that it wasn't"""


def evidence(transcript: Transcript, reading: Reading) -> Array:
    """Sum of what scale, residuals, popularity and membership in the fit say: log likelihood ratios, roughly."""
    score = scale_evidence(transcript, reading) + residual_evidence(transcript, reading)
    level = np.log1p(transcript.public.popularity[reading.items].astype(np.float64))
    score += transcript.assumed.pseudo_items.popularity * (level - level.mean())
    of = of_model(transcript)
    if reading.members is not None and (of is None or of.over == "rated"):
        score += _MEMBER * (reading.members - reading.members.mean())
    if reading.counts is not None:
        score += count_evidence(reading.counts)
    return score


def scale_evidence(transcript: Transcript, reading: Reading) -> Array:
    """log P(distance to the scale | real) − log P(… | virtual), both from the upload's own distances.

    Real ratings lie on the scale up to a blur; of the virtual ones a share that the upload itself shows.
    """
    score = np.zeros(len(reading.items))
    read, step = np.isfinite(reading.ratings), transcript.step
    virtual = 1.0 - rated_share(transcript)
    if not read.any() or virtual == 0.0:
        return score
    off = np.abs(reading.ratings[read] - on_scale(reading.ratings[read], step)) / step
    share, blur = _mixture(off)
    also_on_scale = np.clip((share - (1.0 - virtual)) / virtual, 0.0, 1.0)
    near = np.exp(-0.5 * (off / blur) ** 2) / (blur * np.sqrt(0.5 * np.pi)) + 1e-9
    anywhere = also_on_scale * near + (1.0 - also_on_scale) * 2.0
    score[read] = np.clip(np.log(near) - np.log(anywhere), -_CAP, _CAP)
    return score


def _mixture(off: Array) -> tuple[float, float]:
    """Share of the rows that lie on the scale, and their blur: half-normal against uniform, by EM."""
    share, blur = 0.7, max(float(np.quantile(off, 0.3)), 1e-5)
    for _ in range(30):
        near = share * np.exp(-0.5 * (off / blur) ** 2) / (blur * np.sqrt(0.5 * np.pi))
        belongs = near / (near + (1.0 - share) * 2.0 + 1e-300)
        share = float(np.clip(belongs.mean(), 0.02, 0.999))
        blur = float(np.clip(np.sqrt((belongs * off**2).sum() / max(belongs.sum(), 1e-9)), 1e-5, 0.5))
    return share, blur


def residual_evidence(transcript: Transcript, reading: Reading) -> Array:
    """Residuals of virtual ratings that the model itself predicts are small; those of others are not."""
    errors = np.nan_to_num(np.abs(reading.errors))
    typical = float(np.sqrt(np.mean(errors[reading.pure] ** 2))) if reading.pure.any() else 0.0
    return np.asarray(transcript.assumed.virtual_ratings.residual * errors / max(typical, 1e-300))


def count_evidence(counts: NDArray[np.int64]) -> Array:
    """A denoising client adds 1 for an own row and takes 1 off for each row of another's noise."""
    return np.where(counts >= 0, 20.0, -1.0 * np.abs(counts))
