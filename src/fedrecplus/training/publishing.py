"""What a run's model may tell everybody, and what it gives away all the same.

A run folder is its operator's. What leaves it names no seed, which makes the simulated clients' secrets (who tries all
seeds still recognises the start values in V), and no number at full precision. Figures without noise are made coarse:
an item that few people rated has no count, average or row of its own, the others' counts are rounded to a geometric
grid. That is a floor, no proof: who knows most other people's ratings may still learn something. A proof takes noise,
and noise that was drawn from the seed is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, change
from fedrecplus.errors import UserError
from fedrecplus.parts.model import Model
from fedrecplus.protocol import PublicItems
from fedrecplus.training.model_files import SharedModel

FEWEST_RATERS = 10
"""people who rated an item, for it to have figures and a row of its own"""
_RATIO = 2.0**0.5
"""from one published count to the next"""
_AVERAGE_DIGITS, _MEAN_DIGITS, _FIGURE_DIGITS = 1, 2, 3
_STEPS = 2**11
"""of the largest number of a column of V, to either side"""
PUBLIC_LIST, FROM_RATINGS = "public", "ratings"
"""``item_list`` of a result: where the list of items comes from"""


def published_model(model: SharedModel, result: Mapping[str, Any]) -> SharedModel:
    """The model of a finished run as everybody may have it; ``result`` is its ``result.json``."""
    refuse_seeded(model.config, result)
    if result.get("item_list") != PUBLIC_LIST:
        model = _of_items(model, np.flatnonzero(model.public.popularity >= FEWEST_RATERS))
    exact, rare = is_exact(model.public), model.public.popularity < FEWEST_RATERS
    counted = exact or (not _of_others(model.public) and not result.get("privacy"))
    if exact:
        model = _with_coarse_figures(model, rare)
    if counted:  # noise on the counts alone hides no rating in a row that nobody else moved
        model = replace(model, V=_without_rows(model, rare))
    public = replace(model.public, mean=round(float(model.public.mean), _MEAN_DIGITS))
    dense = _rounded(model.dense[:, None])[:, 0] if model.dense.size else model.dense
    config = change(model.config, "statistics.file", Path(model.config.statistics.file).name)  # without its folders
    return replace(model, V=_rounded(model.V), dense=dense, public=public, config=replace(config, seed=0))


def published_figure(value: float | None) -> float | None:
    """An error, or a measure of lists, to three digits."""
    return None if value is None else round(float(value), _FIGURE_DIGITS)


def refuse_seeded(config: Config, result: Mapping[str, Any]) -> None:
    """Refuse noise that can be drawn again: whoever has the model would take it off."""
    claimed = config.privacy.UNIT is not None or config.statistics.epsilon > 0.0
    if (config.seeded_noise and claimed) or (result.get("privacy") or {}).get("seeded_noise"):
        raise UserError(
            "this run's noise was drawn from its seed: whoever guesses that has the sums without noise",
            "train it again without --seeded-noise (seeded_noise=false); runs of earlier versions are seeded, too",
        )


def is_exact(public: PublicItems) -> bool:
    """Whether counts and averages are the participants', without noise."""
    return public.epsilon is None and not _of_others(public)


def _of_others(public: PublicItems) -> bool:
    """Whether counts and averages are those of people who didn't train this model."""
    return public.source.startswith("public")


def given_away(model: SharedModel, result: Mapping[str, Any]) -> list[str]:
    """What a published model and its figures tell everybody, in plain words; ``result`` is its run's."""
    public, privacy = model.public, result.get("privacy")
    listed = result.get("item_list") == PUBLIC_LIST
    source = "a list that was public before" if listed else f"those with {FEWEST_RATERS} raters or more"
    counts = "counts and averages: with noise, or of other people"
    if is_exact(public):
        counts = (
            f"counts (rounded, a step is 41 %) and averages (to .1) of items with {FEWEST_RATERS} raters or more; "
            f"{(public.popularity == 0).sum():,} items have neither"
        )
    claim = (
        "no noise, so no bound: who knows most other people's ratings may learn something of the rest "
        "(--epsilon bounds that)"
    )
    if privacy is not None:
        claim = (
            f"all of it but the errors is (ε, δ) = ({privacy['epsilon']:.3g}, {privacy['delta']:g}) "
            f"differentially private per {privacy['unit']}"
        )
    return [
        f"gives away: {len(public.popularity):,} items ({source}), and a row of the table for each",
        f"{counts}; errors on test ratings to three digits",
        claim,
    ]


def _of_items(model: SharedModel, kept: NDArray[np.int64]) -> SharedModel:
    """The same model of some of its items."""
    if len(kept) == 0:
        raise UserError(
            f"no item has {FEWEST_RATERS} raters: this model tells single people's ratings and little else",
            "publish a model of more people, or one whose items come from a public list (--catalogue)",
        )
    titles = tuple(model.titles[place] for place in kept.tolist()) if model.titles else ()
    public = model.public.of_items(kept)
    return replace(model, V=model.V[kept], public=public, item_ids=model.item_ids[kept], titles=titles)


def _with_coarse_figures(model: SharedModel, rare: NDArray[np.bool_]) -> SharedModel:
    """Coarse counts and averages; rare items have none."""
    public = model.public
    coarse = replace(
        public,
        popularity=np.where(rare, 0, _on_grid(public.popularity)),
        average=np.where(rare, round(public.mean, _MEAN_DIGITS), np.round(public.averages(), _AVERAGE_DIGITS)),
    )
    return replace(model, public=coarse)


def _without_rows(model: SharedModel, rare: NDArray[np.bool_]) -> NDArray[Any]:
    """V with predicted rows, or zeros where the model predicts none, in place of those of rare items."""
    chosen, V = model.config.model, model.V.copy()
    V[rare] = 0.0
    predicts = type(chosen).new_items is not Model.new_items  # else they are start values, which tell the seed
    if predicts and rare.any() and not rare.all():
        order = np.concatenate([np.flatnonzero(~rare), np.flatnonzero(rare)])
        V[rare] = chosen.new_items(model.V[~rare], model.public.of_items(order), model.config.seed)
    return V


def _on_grid(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nearest power of √2."""
    exponents = np.rint(np.log(np.maximum(counts, 1)) / np.log(_RATIO))
    return np.asarray(np.rint(_RATIO**exponents), dtype=np.int64)


def _rounded(V: NDArray[Any]) -> NDArray[Any]:
    """Every column in 2¹² steps."""
    step = np.maximum(np.abs(V).max(axis=0, initial=0.0), np.finfo(V.dtype).tiny) / _STEPS
    return np.asarray(np.rint(V / step) * step, dtype=V.dtype)
