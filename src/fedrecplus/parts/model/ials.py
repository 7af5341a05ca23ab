"""Implicit alternating least squares in federation: learns from what people chose, not from how they rated it.

s_ui = u·w_i should be 1 for chosen items, with a confidence c_ui, and 0 for all items, with the small weight a. A
device solves for its u exactly, keeps nothing, and uploads c_ui (1 − s_ui)u for the items that it chose and the small
matrix u uᵀ, which stands for the a-term over all items: nothing is sampled and nothing is dense. No rating leaves the
device. A single u uᵀ gives u away, so the sums belong under secure aggregation. Ratings are predicted on the device
alone, by a ridge regression of its own ratings on public columns and W.

After: Hu, Koren, Volinsky 2008 (implicit feedback), Rendle et al. 2022 (iALS revisited), Ammad et al. 2019 (FCF)
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    NOTHING,
    Array,
    Items,
    add_to_diagonal,
    in_numpy,
    like,
    namespace,
    outer,
    product,
    remember_last,
    rows_of,
    solve,
    zeros,
)
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfChoices
from fedrecplus.parts.model import Model, Trained, start_noise
from fedrecplus.parts.model._noisy_choices import rows_of_features, scaled, without_noise
from fedrecplus.parts.model._public import (
    POPULARITY_COLUMN,
    PublicSettings,
    regression_shares,
    ridge_regression,
    rows_from_features,
    with_public_columns,
)
from fedrecplus.parts.recency import VALIDATED, RecencyDecay
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.settings import Annotated, number, text

POPULARITY = POPULARITY_COLUMN
"""the column of X that has the popularity of items"""
_TIE = 1e-9
_STANDS_OUT, _CHANCE = 3.2, 2.5
"""the second component over the mean of all but the first: above the one it is structure, below the other chance"""
_FEWEST_FACTORS = 16
"""with fewer, the mean is mostly that of the second"""


class Settings(PublicSettings):
    """Options of the model."""

    interaction_factors: Annotated[int, number(1, 4096, "d, columns of W")] = 32
    interaction_item_ridge: Annotated[
        float, number(0, 1e3, "λ_w, ridge of a row of W, times √(people who chose it + 4 × those of the average item)")
    ] = 1.15
    from_rating: ClassVar[float] = 1.0
    """ratings from here up, on the standard scale 1–5, are choices; or from the mean up, where lower"""
    confidence_slope: ClassVar[float] = 0.35
    """γ, confidence of a choice is 1 + γ(rating − mean of all ratings), at least 0; less on coarse scales"""
    unobserved_weight: ClassVar[float] = 0.25
    """a, weight of s = 0 over all items"""
    interaction_ridge: ClassVar[float] = 0.175
    """λ, ridge of u, times √(choices + a × items)"""
    following_ridge: ClassVar[float] = 0.005
    """λ where lists follow what was chosen last"""
    interaction_curvature: ClassVar[float] = 2.0
    """κ, how much more alike those are who chose an item than everybody: damps its steps"""
    popular_choices: ClassVar[float] = 1.0
    """pseudo-choices of the average person, drawn by popularity, that u is shrunk to"""
    interaction_scale: Annotated[
        float, number(0.01, 100, "prior sd of the weights of W's columns in predicted ratings")
    ] = 0.9
    rating_weight: Annotated[float, number(0, 1e3, "of the predicted rating in the score that lists rank by")] = 0.06
    popularity_weight: Annotated[
        float, number(0, 1e3, "of the popularity column in the score that lists rank by, where items have few ratings")
    ] = 0.3
    recency: RecencyDecay = VALIDATED
    structure: Annotated[
        Literal["measured", "whole", "popular"],
        text("components of W that lists rank by: those stronger than chance, all, or only the first"),
    ] = "measured"
    few_ratings: ClassVar[float] = 60.0
    """of an item, averaged over ratings: there, popularity has half its weight in lists"""
    interaction_init: ClassVar[float] = 0.05
    """standard deviation of W's start values"""
    interaction_start: Annotated[
        Literal["chance", "features"],
        text("W before training: random; or, for sums with noise, from popularity and the catalogue, at no budget"),
    ] = "chance"


class SharedEquations(NamedTuple):
    """What all people's choice scores come from."""

    W: NDArray[Any]
    gram: NDArray[Any]
    """the part of a person's normal equations that is the same for all"""
    moment: NDArray[Any]


C = TypeVar("C", bound=Settings)


class Ials(Model[C]):
    """s_ui = u·w_i, with u solved for in every round."""

    PREDICTS_COLD_ITEMS = True
    CHOICES = True

    def tree(self) -> dict[str, Leaf]:
        """W, and the upper triangle of u uᵀ."""
        factors = self.settings.interaction_factors
        return {"W": Leaf.table(factors), "gram": Leaf.statistic(factors * (factors + 1) // 2)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """W before training: noise, or what public features say."""
        if self.settings.interaction_start == "features":
            return rows_of_features(seed, self.settings.interaction_factors, public)
        return self.settings.interaction_init * start_noise(seed, "start-W", items, self.settings.interaction_factors)

    def new_items(self, V: NDArray[Any], public: PublicItems, seed: int) -> Array:
        """Rows for items that enter a trained model: what their public features predict."""
        return rows_from_features(V, public, self.settings)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """The gradient of the rows of W, and u uᵀ."""
        gradient, statistic = self.choice_gradient(rows, round_equations(self, broadcast), broadcast.public)
        return Trained(device.U, gradient, statistic)

    def choice_gradient(self, rows: Rows, shared: SharedEquations, public: PublicItems) -> tuple[Array, Array]:
        """c_i (1 − s_i)u for chosen items and 0 for the others, and u uᵀ as its upper triangle, row by row."""
        items = namespace(shared.W).where(rows.rated, rows.items, NOTHING)
        u, confidence = self.person_factors(shared, items, rows.ratings, public)
        e = confidence * (1.0 - product(rows_of(shared.W, rows.items), u))
        first, second = np.triu_indices(u.shape[-1])
        return outer(e, u), u[..., first] * u[..., second]

    def choosing(self) -> OfChoices:
        """What an attacker knows of W's columns: all of an upload's are multiples of u."""
        return OfChoices(slice(-self.settings.interaction_factors, None))

    def confidences(self, ratings: Array, public: PublicItems, recency: Array | None = None) -> Array:
        """c = 1 + γ(r − mean) of choices, 0 of ratings that are none. Where everybody gave the same, all are choices.

        On coarse scales ratings are far from their mean by rounding alone, so γ is divided by ``public.noise``. What
        comes next follows from what was chosen, liked or not: there c is ``recency``.
        """
        chosen = ratings >= min(self.settings.from_rating, public.mean) - _TIE
        if recency is not None:
            return chosen * recency
        confidence = 1.0 + self.settings.confidence_slope / public.noise * (ratings - public.mean)
        return chosen * namespace(ratings).clip(confidence, 0.0, None)  # type: ignore[no-any-return]

    def person_factors(
        self,
        shared: SharedEquations,
        items: Items,
        ratings: Array,
        public: PublicItems,
        recency: Array | None = None,
    ) -> tuple[Array, Array]:
        """u of (a WᵀW + Σ_chosen c w wᵀ + k Σ_i q_i w wᵀ + λI) u = Σ_chosen c w + k Σ_i q_i w, and c.

        q is public popularity, a distribution. Ours: k pseudo-choices of the average person, so that who has chosen
        little gets what is popular.
        """
        gram, weighted, c = self.person_equations(shared, items, ratings, public, recency)
        u, _ = solve(gram, shared.moment + namespace(weighted).sum(weighted, axis=-1))
        return u, c

    def person_equations(
        self, shared: SharedEquations, items: Items, ratings: Array, public: PublicItems, recency: Array | None
    ) -> tuple[Array, Array, Array]:
        """The matrix before u, c w of each chosen item as columns, and c."""
        xp, w = namespace(shared.W), rows_of(shared.W, items)
        c = (items >= 0) * self.confidences(ratings, public, recency)
        weighted = xp.matrix_transpose(c[..., None] * w)
        ridge = self.person_ridge(xp.sum(c, axis=-1), len(shared.W), following=recency is not None)
        return add_to_diagonal(shared.gram + weighted @ w, ridge[..., None]), weighted, c

    def person_ridge(self, choices: Array, items: int, *, following: bool = False) -> Array:
        """λ √(choices + a × items). After: Rendle et al. 2022, whose exponent is a setting"""
        root: Array = (choices + self.settings.unobserved_weight * items) ** 0.5
        return (self.settings.following_ridge if following else self.settings.interaction_ridge) * root

    def shared_equations(self, W: NDArray[Any], public: PublicItems) -> SharedEquations:
        """The part of a person's normal equations that is the same for all, and public; in double precision first."""
        xp, settings = namespace(W), self.settings
        wide, q = xp.astype(W, xp.float64), public.popularity / max(public.popularity.sum(), 1)
        q = like(q, wide)
        gram = settings.unobserved_weight * wide.T @ wide + settings.popular_choices * (q[:, None] * wide).T @ wide
        return SharedEquations(W, xp.astype(gram, W.dtype), xp.astype(settings.popular_choices * (q @ wide), W.dtype))

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """The gradient Σ c(1 − s)u − a S w_i − λ_i w_i, divided by (a + κ n_i/n) S + λ_i I, where S = Σ u uᵀ.

        λ_i = λ_w √(n_i + 4 n̄), where n̄ is the mean of n_i, and 4 n̄ at least one person: a small cohort may have no row
        that is summed. All items' matrices have S's eigenvectors, so one decomposition solves for all.

        After: Rendle et al. 2022, who have a n for 4 n̄. Ours: in sparse data that is many times n_i, and leaves no row.
        """
        settings, W = self.settings, V.astype(np.float64)
        S = _symmetric(sums.statistic, W.shape[1])
        mean_weight = sums.overall / sums.clients if sums.clients else 0.0
        noisy = sums.noise > 0.0 and settings.interaction_start == "features"
        clients = public.people if noisy else sums.clients  # noise hides how many there were
        people = np.maximum(sums.weights / mean_weight if mean_weight > 0 else np.zeros(len(W)), 0.0)
        ridge = np.sqrt(people + max(4.0 * people.mean(), 1.0))[:, None]
        ridge *= settings.interaction_item_ridge * mean_weight
        gradient = sums.total - settings.unobserved_weight * W @ S - ridge * W
        share = people / max(clients, 1)
        sizes, directions = np.linalg.eigh(S)
        strength = (settings.unobserved_weight + settings.interaction_curvature * share)[:, None]
        curvature = np.maximum(strength * np.maximum(sizes, 0.0) + ridge, 1e-12)
        step = ((gradient @ directions) / curvature) @ directions.T
        if not noisy:
            return np.asarray(step)
        evidence = curvature * ((W + step) @ directions)  # what the sums say of the row as a whole
        fitted = (without_noise(evidence, sums.noise, people) / curvature) @ directions.T
        return scaled(fitted, public) - W

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (b_i, constant, popularity, average, content, scaled W_i)."""
        return with_public_columns(self.settings.interaction_scale * V, public, self.settings)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A ridge regression of the person's ratings on public columns and W."""
        nothing = zeros((X.shape[1] - 1,), X)
        ridge = nothing + self.settings.noise * public.noise
        return ridge_regression(rows_of(X, items), ratings, ridge, nothing)[0]

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A⁻¹ x_k times how far rating k is from the baseline."""
        x = rows_of(X, items)
        ridge = np.full(X.shape[1] - 1, self.settings.noise * public.noise)
        return regression_shares(x, ratings - x[:, 0], ridge)

    def choice_columns(self, columns: int) -> slice:
        """Those of W among so many columns of X."""
        return slice(columns - self.settings.interaction_factors, columns)

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Weights z over X such that X·z = u·M w_i + rating weight × predicted rating + popularity weight × popularity.

        M is ``kept_structure`` of W. Where lists follow what was chosen last (``recency``), predicted ratings have no
        say: even among last choices that were liked, they made it worse.
        """
        of_rating, of_popularity = self.mixing_weights(public)
        shared, structure = list_equations(self, X, public)
        u, _ = self.person_factors(shared, items, ratings, public, recency)
        z = of_rating * w if recency is None else zeros(w.shape, X)
        z[..., POPULARITY] += of_popularity
        z[..., self.choice_columns(X.shape[1])] += u @ structure / self.settings.interaction_scale
        return z

    def list_weight_shares(
        self, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """What choice k adds to u, and rating k to the prediction. After: Hu, Koren and Volinsky 2008, section 5"""
        shared, structure = list_equations(self, X, public)
        gram, weighted, _ = self.person_equations(shared, items, ratings, public, recency)
        shares = np.zeros((len(items), X.shape[1]))
        if recency is None:
            shares = self.mixing_weights(public)[0] * self.weight_shares(X, items, ratings, public)
        of_choices = np.linalg.solve(gram, weighted).T
        shares[:, self.choice_columns(X.shape[1])] += of_choices @ structure / self.settings.interaction_scale
        return shares

    def kept_structure(self, W: NDArray[Any], public: PublicItems) -> Array:
        """M = (1 − α)I + α f fᵀ: where W's components look like chance, only the first, popularity, is kept."""
        alike, first = self.likeness(W, public)
        return np.asarray((1.0 - alike) * np.eye(len(first)) + alike * np.outer(first, first))

    def likeness(self, W: NDArray[Any], public: PublicItems) -> tuple[float, Array]:
        """α and f, as measured unless the settings know better."""
        alike, first = likeness_of_components(W, public)
        return {"measured": alike, "whole": 0.0, "popular": 1.0}[self.settings.structure], first

    def mixing_weights(self, public: PublicItems) -> tuple[float, float]:
        """Weights of the predicted rating and of popularity in the score that lists rank by.

        n̂ = Σn²/Σn is how many ratings the item behind a rating has on average. Rows of W that few people made are
        mostly chance, and popularity is not: its weight falls with 1/(1 + (n̂/few)⁴). On coarse scales
        (``public.noise``) ratings say less, and popularity has more weight. Ours: chosen on validation cuts.
        """
        counts = public.popularity.astype(np.float64)
        met = float(counts @ counts / max(counts.sum(), 1.0))
        rare = 1.0 / (1.0 + (met / self.settings.few_ratings) ** 4)
        return self.settings.rating_weight / public.noise, self.settings.popularity_weight * public.noise * rare


@remember_last
def round_equations(model: Ials[Any], broadcast: Broadcast) -> SharedEquations:
    """Of a round's W, which are the last columns of the table."""
    xp, columns = namespace(broadcast.V), model.settings.interaction_factors
    W = xp.asarray(broadcast.V[:, -columns:], copy=True)
    return model.shared_equations(W, broadcast.public)


@remember_last
def list_equations(model: Ials[Any], X: NDArray[Any], public: PublicItems) -> tuple[SharedEquations, NDArray[Any]]:
    """Of W as it stands in X, and its ``kept_structure``."""
    W = X[:, model.choice_columns(X.shape[1])] / model.settings.interaction_scale
    return model.shared_equations(W, public), like(model.kept_structure(in_numpy(W), public), W)


def _symmetric(upper: Array, size: int) -> Array:
    """The matrix of an upper triangle."""
    S = np.zeros((size, size))
    if upper.size:
        S[np.triu_indices(size)] = upper
    return S + np.triu(S, 1).T


def likeness_of_components(W: NDArray[Any], public: PublicItems) -> tuple[float, Array]:
    """α, from 0 where W's components differ to 1 where all but the first are alike, and the direction f of the first.

    The components' strengths are the eigenvalues of Σ √(1 + n_i) w_i w_iᵀ. What people have in common stands out: the
    second is several times the mean of all but the first. Of choices at random they are all alike, since a random
    matrix has no direction of its own, and each of them would only disturb the list. Ours.
    """
    W = W.astype(np.float64)
    strengths, directions = np.linalg.eigh((W * np.sqrt(1.0 + public.popularity)[:, None]).T @ W)
    strengths, first = strengths[::-1], directions[:, -1]
    mean = float(strengths[1:].mean()) if W.shape[1] >= _FEWEST_FACTORS else 0.0
    if mean <= 0.0:
        return 0.0, first
    return float(np.clip((_STANDS_OUT - strengths[1] / mean) / (_STANDS_OUT - _CHANCE), 0.0, 1.0)), first
