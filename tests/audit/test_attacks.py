"""Every attack breaks a scheme that it is made for, and is at chance where the truth was permuted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.audit import ORDER, guesses
from fedrecplus.audit.scoring import Score, score
from fedrecplus.parts import choices

ONE_EPOCH = "client.local_epochs=1"
KEPT = ("pseudo_items.redraw=false", "pseudo_items.encoder=public", "pseudo_items.pad=false", ONE_EPOCH)

# Each with the least area that is a success. With 20 rated rows of 40 and 30 users, chance has a standard error of
# √(41 / (12 · 20 · 20) / 30) = .017: .6 is six of them above it. What is found is higher by .02 to .1, as room for
# processors that round otherwise.
TELLS_ROWS = {
    "popularity": ("fedrec", (), 0.65),
    "one-round": ("fedrec", (), 0.9),
    "two-round": ("fedrec", (), 0.9),
    "u-step": ("fedrec+", ("client.u_step=rated", *KEPT), 0.85),
    "inversion": ("fedrec", (), 0.9),
    "intersection": ("fedrec", (), 0.95),
    "neighbours": (
        "fedrec+",
        ("virtual_ratings.rule=nearest", "virtual_ratings.refresh=false", "pseudo_items.rule=similar", *KEPT),
        0.65,
    ),
    "crowd": ("fedrec", ("pseudo_items.redraw=false",), 0.62),
    "taste": ("fedrec", ("pseudo_items.redraw=false",), 0.6),
    "shadow": ("fedrec", (), 0.9),
}
READS_RATINGS = {
    "one-round": ("fedmf", (ONE_EPOCH,), 0.99),
    "two-round": ("fedmf", (ONE_EPOCH,), 0.9),
    "inversion": ("fedmf", ("client.local_epochs=5",), 0.85),
}


def result_of(recorded, attack: str, scheme: str, settings: tuple[str, ...], permuted: bool = False) -> Score:
    recording, config = recorded(scheme, *settings)
    said = guesses(recording.transcript, attack)
    if permuted:
        random = np.random.default_rng(0)
        said = {
            client: [replace(one, items=random.permutation(one.items)) for one in some] for client, some in said.items()
        }
    return score(said, recording.truth, 1.0 / (1.0 + config.pseudo_items.ratio))


def test_every_attack_has_a_scheme_that_it_must_break_and_a_place_in_the_table() -> None:
    assert set(choices("audit.attacks")) == set(TELLS_ROWS) == set(ORDER)


@pytest.mark.parametrize("attack", TELLS_ROWS)
def test_attack_tells_rated_rows_from_pseudo_rows(recorded, attack: str) -> None:
    scheme, settings, least = TELLS_ROWS[attack]
    found = result_of(recorded, attack, scheme, settings)
    assert found.auc is not None
    assert found.auc >= least
    assert found.precision is not None
    assert found.precision > found.precision_chance


@pytest.mark.parametrize("epochs", [1, 5])
def test_shadow_is_the_strongest_where_values_tell_little(recorded, epochs: int) -> None:
    """Made-up clients teach next to nothing there: what single attacks know of real people must not be lost."""
    settings = (f"client.local_epochs={epochs}",)
    found = {one: result_of(recorded, one, "fedrec+private", settings).auc for one in ORDER}
    assert found["shadow"] == max(found.values()), found


@pytest.mark.parametrize("attack", READS_RATINGS)
def test_attack_reads_ratings(recorded, attack: str) -> None:
    scheme, settings, least = READS_RATINGS[attack]
    found = result_of(recorded, attack, scheme, settings)
    assert found.rating_exact is not None
    assert found.rating_exact >= least
    assert found.auc is None, "without pseudo items there is nothing to tell apart"


@pytest.mark.parametrize("attack", TELLS_ROWS)
def test_attack_is_at_chance_where_the_truth_is_permuted(recorded, attack: str) -> None:
    scheme, settings, _ = TELLS_ROWS[attack]
    found = result_of(recorded, attack, scheme, settings, permuted=True)
    assert found.auc == pytest.approx(0.5, abs=0.06)
    assert found.precision == pytest.approx(found.precision_chance, abs=0.06)


@pytest.mark.parametrize("attack", READS_RATINGS)
def test_ratings_of_permuted_rows_are_not_read(recorded, attack: str) -> None:
    scheme, settings, _ = READS_RATINGS[attack]
    found = result_of(recorded, attack, scheme, settings, permuted=True)
    assert found.rating_exact is not None
    assert found.rating_exact < 0.5


def test_item_biases_show_the_residuals_outright(recorded) -> None:
    settings = ("model.biases=true", "model.global_mean=true", "client.learning_rate=0.1", ONE_EPOCH)
    found = result_of(recorded, "one-round", "fedmf", settings)
    assert found.rating_exact is not None
    assert found.rating_exact >= 0.95


def test_weights_that_clients_send_are_taken_out_again(recorded) -> None:
    settings = ("aggregation.rule=wasserstein", "aggregation.weigh_on=client", ONE_EPOCH)
    found = result_of(recorded, "one-round", "fedmf", settings)
    assert found.rating_exact is not None
    assert found.rating_exact >= 0.99


def test_shrinking_to_the_start_hides_nothing(recorded) -> None:
    settings = ("model.shrink_to=start", "model.regularisation=0.1", "client.learning_rate_decay=0.95", ONE_EPOCH)
    found = result_of(recorded, "one-round", "fedmf", settings)
    assert found.rating_exact is not None
    assert found.rating_exact >= 0.99


def test_denoising_clients_are_read_by_their_counts(recorded) -> None:
    found = result_of(recorded, "one-round", "fedrec++", ("client.learning_rate=0.2",))
    assert found.auc is not None
    assert found.auc >= 0.9


def test_clients_that_sit_rounds_out_are_attacked_by_the_rounds_they_were_in(recorded) -> None:
    settings = ("client.fraction=0.5", "client.learning_rate=0.2", ONE_EPOCH)
    for attack in choices("audit.attacks"):
        result_of(recorded, attack, "fedrec", settings)


@pytest.mark.parametrize("attack", choices("audit.attacks"))
def test_guesses_speak_of_rows_that_were_uploaded(recorded, attack: str) -> None:
    scheme, settings, _ = TELLS_ROWS[attack]
    recording, _ = recorded(scheme, *settings)
    for client, said in guesses(recording.transcript, attack).items():
        uploaded = {sent.round: sent.upload.items for sent in recording.transcript.uploads(client)}
        for guess in said:
            assert np.array_equal(guess.items, uploaded[guess.round])
            assert len(guess.ratings) == len(guess.rated) == len(guess.items)
            assert np.isfinite(guess.rated).all()
