"""Normal equations give ratings away where all rows were used, and name the rows where only some were."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.audit.attacks._solved import Shown, memberships, solve, used_rows
from fedrecplus.parts.assumptions import OfModel

ROWS, HIDDEN, SEEN = 40, 3, 6
OF = OfModel(slice(-SEEN, None), {0: 1.0}, "exactly", "rated")


def an_upload(seed: int, used: np.ndarray, prior: float, moved: float = 0.0) -> tuple[Shown, np.ndarray, np.ndarray]:
    """An upload of a ridge regression on some of its rows, its ratings, and its weights.

    ``moved``: how far rows that were used are off the multiples of w, for somebody who doesn't know that they were.
    """
    random = np.random.default_rng(seed)
    X = np.hstack([np.full((ROWS, 1), 3.4), random.normal(size=(ROWS, HIDDEN + SEEN))])
    ratings = np.random.default_rng(7).integers(1, 6, ROWS).astype(float)
    ridge, priors = np.full(HIDDEN + SEEN, 2.0), np.append(np.zeros(HIDDEN + SEEN - 1), prior)
    A, chosen = X[:, 1:], used.astype(bool)
    gram = A[chosen].T @ A[chosen] + np.diag(ridge + 0.1 * used.sum())
    w = priors + np.linalg.solve(gram, A[chosen].T @ (ratings[chosen] - 3.4 - A[chosen] @ priors))
    sent = np.outer(ratings - 3.4 - A @ w, w[-SEEN:]) - moved * used[:, None] * A[:, -SEEN:]

    def ridge_and_prior(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ridge + 0.1 * np.asarray(m.sum(axis=-1))[..., None], priors

    shown = Shown(np.arange(ROWS), X, lambda m: sent + moved * m[:, None] * A[:, -SEEN:], ridge_and_prior, OF)
    return shown, ratings, np.append(1.0, w)


@pytest.mark.parametrize("prior", [0.0, 1.5])
def test_one_upload_gives_ratings_and_all_weights(prior: float) -> None:
    shown, ratings, w = an_upload(0, np.ones(ROWS), prior)
    found, e = solve(shown, np.ones(ROWS), step=1.0)
    assert found == pytest.approx(w)
    assert shown.X @ found + e == pytest.approx(ratings)


def test_rows_that_are_no_multiples_of_what_others_are_were_used() -> None:
    used = (np.arange(ROWS) < ROWS // 2).astype(float)
    shown, ratings, _ = an_upload(1, used, 1.5, moved=0.3)
    found = used_rows(shown, hidden=True)
    assert np.array_equal(found, used)
    w, e = solve(shown, found, step=1.0)
    assert shown.X @ w + e == pytest.approx(ratings)
    assert np.array_equal(used_rows(shown, hidden=False), np.ones(ROWS))


def test_equations_of_several_uploads_name_the_rows_that_were_used() -> None:
    used = (np.arange(ROWS) % 2).astype(float)
    rounds = [an_upload(seed, used, 1.5) for seed in range(6)]
    solved = [(w, ratings - shown.X @ w) for shown, ratings, w in rounds]
    several = memberships([shown for shown, _, _ in rounds], solved, share=0.5)
    assert several[-1] == pytest.approx(used, abs=0.05)
    one = memberships([rounds[0][0]], solved[:1], share=0.5)[0]
    assert one[used == 1].mean() > one[used == 0].mean()
