"""Every setting of a training, its default and its meaning. One set of names for TOML, ``--set`` and Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class ModelSettings:
    """The model: r̂ = U·V, optionally around a global mean and biases."""

    factors: int = 20  # d
    """length of the latent feature vectors"""
    biases: bool = False
    """add a user bias (stays on the device) and an item bias (a column of V)"""
    global_mean: bool = False
    """predict deviations from the mean of all ratings (one public number)"""
    start: Literal["constant", "normal", "uniform"] = "constant"
    """start values: ``constant`` makes every first prediction ``start_rating``, the others begin around zero"""
    start_rating: float = 3.5
    """what a ``constant`` start predicts, on the standard scale 1–5"""
    start_spread: float = 0.1
    """standard deviation (``uniform``: half-width) of the start values' noise"""
    regularisation: float = 0.02  # λ
    """weight decay of the rows of V and, unless ``user_regularisation`` is given, of U"""
    user_regularisation: float = -1.0
    """weight decay of U; negative: the same as ``regularisation``"""
    decay_per: Literal["row", "rating"] = "row"
    """whether every uploaded row decays V by λ (paper), or every rated one: λ is then divided by 1 + ρ"""
    shrink_to: Literal["zero", "start"] = "zero"
    """what weight decay pulls towards: zero (paper) or the start value without its noise"""
    floor: float = 0.0
    """weight decay of a row of V towards the mean row besides, whatever the number of its ratings: holds rare items"""
    decay_unit: Literal["standard", "levels"] = "standard"
    """what all weight decay is measured in: standard units, or the spread that the scale's levels bring with them, of
    which likes have twice as much as five stars"""


@dataclass(frozen=True)
class ClientSettings:
    """What a client does in a round."""

    local_epochs: int = 1  # K
    """passes over the client's rows in a round"""
    learning_rate: float = 0.5  # η_L
    """local step size"""
    learning_rate_decay: float = 1.0
    """factor on the local step size after each round"""
    batch_size: int = 0  # B
    """rows per local step; 0: all at once"""
    contrast: float = 1.0
    """how much larger U's steps may be where its factors differ than where they move together; 1: alike (paper)"""
    u_step: Literal["all", "rated"] = "all"
    """which rows the U step uses: rated and pseudo (paper) or rated alone (more accurate, and gives the set away)"""
    fraction: float = 1.0
    """share of all clients that is asked in a round"""
    dropout: float = 0.0
    """share of the asked clients that never answers"""


@dataclass(frozen=True)
class PseudoItemSettings:
    """Which unrated items a client uploads too."""

    rule: str = "none"
    """none, random, popular, similar, or any file in ``pseudo_items/``"""
    ratio: float = 1.0  # ρ
    """pseudo items per rated item"""
    count: int = 0  # k
    """this many pseudo items instead of a ratio, where positive"""
    redraw: bool = False
    """draw a new set each round (FedRec) instead of keeping the one of the client's first round"""
    encoder: str = "centred"
    """features for similarity: identity, centred, whitened, content, learned, or any file in ``encoders/``"""
    pad: bool = False
    """round the number of uploaded rows up to a size class, with more pseudo items"""


@dataclass(frozen=True)
class VirtualRatingSettings:
    """Which ratings pseudo items get."""

    rule: str = "user-average"
    """user-average, hybrid, nearest, weighted, predicted, or any file in ``virtual_ratings/``"""
    rounding: Literal["none", "nearest", "stochastic"] = "none"
    """leave them as they are, or put them on the rating scale"""
    refresh: bool = True
    """compute them anew each round instead of keeping those of the client's first round"""
    predict_after: int = 10  # T_predict
    """hybrid filling: rounds of user averages before predictions"""
    local_steps: int = 10  # T_local
    """hybrid filling: extra U steps on real ratings before predicting"""


@dataclass(frozen=True)
class AggregationSettings:
    """How the server joins the uploads."""

    rule: str = "uniform"
    """uniform, wasserstein, coordinate-median, trimmed-mean, krum, or any file in ``aggregation/``"""
    normalise: Literal["item", "clients", "sum"] = "item"
    """weighted mean per item over those who uploaded it (FedRec), over all clients of the round (paper), or no mean"""
    rows: Literal["table", "own", "mean-own"] = "mean-own"
    """Wasserstein: rows that the distance runs over: the whole table, the client's own, or the mean per own row"""
    temperature: float = 1.0  # τ
    """Wasserstein: weights are D to the power −τ; 1 is the paper, 0 is uniform"""
    covariance: Literal["none", "diagonal", "full"] = "none"
    """Wasserstein: leave tr(M²) out (large batches), or estimate it; ``full`` on small tables in the reference only"""
    bound: float = 0.1
    """Wasserstein: distances count as at least this share of the global step's own size, which bounds the weights"""
    global_step: Literal["last", "mean"] = "last"
    """Wasserstein: what distances are measured to: the step applied last round, or this round's uniform mean"""
    weigh_on: Literal["server", "client"] = "server"
    """Wasserstein: who computes the weight; a client sends w·Δ and w, and the server need not see Δ"""
    denoising: float = 0.0
    """FedRec++: share of clients that collect the others' pseudo gradients and take them out again"""
    trim: float = 0.1
    """trimmed mean: share of an item's rows left out at either end; Krum: share of them that may be hostile"""


@dataclass(frozen=True)
class ServerSettings:
    """What the server does with the aggregate."""

    rounds: int = 100  # T
    """communication rounds"""
    step: str = "plain"
    """plain, momentum, adam, or any file in ``server_steps/``"""
    learning_rate: float = 1.0  # η
    """global step size"""
    learning_rate_decay: float = 1.0
    """factor on the global step size after each round"""
    contrast: float = 1.0
    """how much larger V's steps are where a row's factors differ than where they move together; 1: alike (paper)"""
    momentum: float = 0.9  # β₁
    """momentum and Adam: share of the last direction that is kept"""
    second_momentum: float = 0.99  # β₂
    """Adam: share of the last squared step that is kept"""


@dataclass(frozen=True)
class PredictionSettings:
    """How a device predicts ratings for its owner."""

    factors: Literal["own", "refit"] = "own"
    """the U that uploads come from, or a second one fitted to the rated items on the device and never uploaded"""
    regularisation: float = 0.05
    """refit: weight decay per rated item"""
    floor: float = 0.0
    """refit: weight decay besides, whatever the number of rated items"""
    mean_ratings: float = 0.0
    """refit: so many ratings of the mean item, as if they had been as expected, count beside the person's own"""
    shrink_to: Literal["model", "typical"] = "model"
    """refit: what weight decay pulls towards: ``model.shrink_to``, or who gives the mean item the mean rating"""
    average_ratings: float = 0.0
    """refit: an item's public average counts as so many of its ratings; 0: nothing is known of it but its row of V"""
    traits: float = 0.0
    """refit: weight of a person's taste for all items, for popular ones and for well-liked ones; 0: none"""
    content: float = 0.0
    """refit: weight of a person's taste for genres and years, where there is a catalogue; 0: none"""
    trait_ratings: float = 0.0
    """refit: the row that an item's traits foretell counts as so many of its ratings"""


@dataclass(frozen=True)
class EvaluationSettings:
    """When to look at the test ratings."""

    every: int = 10
    """rounds between evaluations; the last round is always evaluated"""


@dataclass(frozen=True)
class Config:
    """A whole training."""

    algorithm: str = "custom"
    """the preset it began as"""
    trainer: Literal["federated", "central"] = "federated"
    """rounds across clients, or gradient descent over all ratings in one place (PMF)"""
    engine: Literal["fast", "reference"] = "fast"
    """numba kernels for all clients at once, or the readable NumPy rounds"""
    precision: Literal["float32", "float64"] = "float32"
    """of the fast engine; the reference always has float64"""
    seed: int = 0
    """of start values, folds, sampling and, in simulation, the clients' secrets"""
    model: ModelSettings = field(default_factory=ModelSettings)
    client: ClientSettings = field(default_factory=ClientSettings)
    pseudo_items: PseudoItemSettings = field(default_factory=PseudoItemSettings)
    virtual_ratings: VirtualRatingSettings = field(default_factory=VirtualRatingSettings)
    aggregation: AggregationSettings = field(default_factory=AggregationSettings)
    server: ServerSettings = field(default_factory=ServerSettings)
    prediction: PredictionSettings = field(default_factory=PredictionSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
