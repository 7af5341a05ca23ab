"""Canaries in sums as devices send them: clipped, encoded in the ring, with each device's own share of the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from fedrecplus.audit.canaries import REFUTES, Canaries
from fedrecplus.audit.epsilon_bounds import bounds
from fedrecplus.config import assign, check, preset
from fedrecplus.deploy.wire.ring import SumTerms, sum_terms
from fedrecplus.engines import Problem, engine_of, message_of, prepare
from fedrecplus.parts.channel import Encoding, RingVector, add_all, decode, encode
from fedrecplus.parts.privacy import Words, distributed, seeded_words
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.rounds import outgoing
from tests.audit.conftest import small_town

CANARIES, ROUNDS = 300, 3


def noised(epsilon: float) -> Problem:
    settings = (
        "precision=float64", "model.rule=reconstruction", "model.factors=8", f"server.rounds={ROUNDS}",
        "aggregation.rule=uniform", "channel.bits=32", "channel.fewest_contributors=1", "privacy.rule=distributed",
        f"privacy.epsilon={epsilon}", "privacy.delta=1e-4", "privacy.statistics_share=.01", "seeded_noise=true",
    )  # fmt: skip
    return prepare(small_town(), replace(check(assign(preset("fedrec+secure"), settings)), engine="fast"))


def upload_of(problem: Problem, message: Broadcast, canaries: Canaries, number: int) -> Upload:
    """What a canary's device sends: as much as clipping lets through, in its number of the table."""
    item, column = divmod(int(canaries.cells[number]), message.V.shape[1])
    delta = np.zeros((1, message.V.shape[1]))
    delta[0, column] = canaries.signs[number] * 1e6
    update = Upload(number, np.array([item]), delta, statistic=np.zeros(problem.config.model.statistic_size))
    return outgoing(update, number, message, problem.config)


def vectors_of(
    uploads: list[Upload], canaries: Canaries, terms: SumTerms, encoding: Encoding, words: Words
) -> Iterator[RingVector]:
    """Everybody's, as they are masked: zeros of who is out, and a share of the noise.

    As many devices as the budget counts on add theirs: of the others an attacker may know it.
    """
    assert terms.noise is not None
    honest = int(terms.noise.settings.honest * CANARIES)
    for place, upload in enumerate(uploads):
        away = replace(upload, delta=np.zeros_like(upload.delta), clipped=False)
        vector = encode(upload if canaries.included[place] else away, encoding)
        if place < honest:
            terms.add_share(vector, encoding, CANARIES, words)
        yield vector


def scores_of(problem: Problem, canaries: Canaries) -> NDArray[np.float64]:
    """What is left at each canary's number of every round's sum, by the noise that the server says is in it."""
    scores, message = np.zeros(CANARIES), message_of(problem, engine_of(problem.config).start(problem))
    columns, budget = message.V.shape[1], problem.config.privacy.settings
    for number in range(ROUNDS):
        terms = sum_terms(problem.config, problem.public, message.V.shape, number)
        encoding = terms.encoding(CANARIES, CANARIES)
        uploads = [upload_of(problem, message, canaries, each) for each in range(CANARIES)]
        vectors = vectors_of(uploads, canaries, terms, encoding, seeded_words(number))
        seen = decode(add_all(vectors, terms.layout), encoding).total.ravel()[canaries.cells]
        own = np.array([upload.delta[0, cell % columns] for upload, cell in zip(uploads, canaries.cells, strict=True)])
        assert np.abs(own).min() == pytest.approx(budget.clip, rel=0.01)
        variance = terms.share(encoding, CANARIES) ** 2 * int(budget.honest * CANARIES)
        scores += (seen - 0.5 * own) * own / variance
    return scores


def shown(problem: Problem) -> tuple[float, float, bool]:
    """What canaries show of ε at 95 %, what is claimed, and whether the claim is refuted."""
    message = message_of(problem, engine_of(problem.config).start(problem))
    canaries = Canaries.drawn(CANARIES, message.V.size, seed=3)
    scores, budget = scores_of(problem, canaries), problem.config.privacy.settings
    found, surely = (max(bounds(scores, canaries.included, budget.delta, *level)) for level in ((), (REFUTES,)))
    return found, budget.epsilon, surely > budget.epsilon


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_what_devices_send_does_not_contradict_the_claim(epsilon: float) -> None:
    found, claimed, refuted = shown(noised(epsilon))
    assert not refuted
    assert found <= claimed


def test_shares_of_a_tenth_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = distributed.share_scale
    monkeypatch.setattr(distributed, "share_scale", lambda *given: scale(*given) / 10)
    assert shown(noised(1.0))[2]


def test_canaries_see_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise every coin is read, so that what passes above passes by the noise."""
    monkeypatch.setattr(distributed, "ring_noise", lambda size, *_: np.zeros(size, dtype=np.int64))
    assert shown(noised(1.0))[0] > 4.0
