"""A transcript holds what the channel shows a server, as it was sent, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.audit.attacks import Attack
from fedrecplus.audit.audit import guesses
from fedrecplus.audit.recording import record, schedule
from fedrecplus.engines import engine_of, message_of, rounds
from fedrecplus.parts import choices
from fedrecplus.rounds import server_round, sums_of
from tests.audit.conftest import CLIENTS, small_problem


@pytest.mark.parametrize("scheme", ["fedrec+private", "fedrec++"])
def test_recorded_uploads_are_those_that_the_rounds_apply(scheme: str) -> None:
    problem = small_problem(scheme)
    transcript, engine = record(problem, 3, users=CLIENTS).transcript, engine_of(problem.config)
    before = engine.start(problem)
    for number, (after, _) in zip(range(2), rounds(engine, problem, before), strict=False):
        uploads = [
            one.upload for client in transcript.clients for one in transcript.uploads(client) if one.round == number
        ]
        assert len(uploads) == CLIENTS
        sums = sums_of(uploads, message_of(problem, before), problem.config)
        assert (
            pytest.approx(after.server.V, abs=1e-5)
            == server_round(before.server, sums, problem.public, problem.config).V
        )
        assert pytest.approx(before.server.V, rel=1e-6) == transcript.broadcast(number).V
        before = after


def test_numbers_have_the_precision_of_the_wire(recorded) -> None:
    transcript = recorded("fedrec+private")[0].transcript
    sent = transcript.uploads(transcript.clients[0])[0].upload
    for table in (sent.delta, transcript.broadcast(0).V):
        assert np.array_equal(table, table.astype(np.float32))


def test_the_secret_seed_is_not_in_a_transcript(recorded) -> None:
    recording, config = recorded("fedrec+private", "seed=7")
    assert config.seed == 7
    assert recording.transcript.config.seed == 0


def test_a_channel_that_shows_sums_gives_the_server_sums_and_no_attack_an_upload(recorded) -> None:
    transcript = recorded("fedrec", "channel.rule=sums", "model.learning_rate=0.2")[0].transcript
    assert (transcript.sent, transcript.crowd) == ({}, {})
    assert transcript.sums.keys() == set(transcript.rounds)
    clear = recorded("fedrec", "channel.rule=clear")[0].transcript
    total = sum(1.0 for _ in clear.crowd)
    assert transcript.sums[0].clients == total == transcript.sums[0].overall
    for attack in choices(Attack):
        if transcript.shows.isdisjoint(Attack.choose(attack).SEES):
            assert not any(guesses(transcript, attack).values())


def test_a_channel_that_hides_values_shows_the_list_of_rows(recorded) -> None:
    hidden = recorded("fedrec", "channel.rule=sums", "channel.rows=rows")[0].transcript
    clear = recorded("fedrec", "channel.rule=clear")[0].transcript
    for client in clear.clients:
        for one, other in zip(hidden.uploads(client), clear.uploads(client), strict=True):
            assert np.array_equal(one.upload.items, other.upload.items)
            assert one.upload.delta.size == 0
            assert one.upload.weight is None
    assert hidden.shows == {"statistics", "lists", "sums"}


def test_a_person_replaced_in_sums_is_gone_from_them(recorded) -> None:
    recording, _ = recorded("fedmf", "channel.rule=sums", "cohort.fraction=0.5")
    transcript, contributions = recording.transcript, recording.contributions
    client, other = transcript.clients[:2]
    replaced = contributions.replaced(transcript, client, other)
    for t, sums in transcript.sums.items():
        change = replaced.sums[t].weights - sums.weights
        if client not in transcript.cohorts[t]:
            assert not change.any()
            continue
        out, into = (contributions.of_round[t][one] for one in (client, other))
        assert set(np.flatnonzero(change)) == set(out.items) ^ set(into.items)
        back = contributions.replaced(replaced, other, client) if other in transcript.cohorts[t] else None
        assert back is None or np.allclose(back.sums[t].total, sums.total)


def test_a_person_replaced_leaves_public_weights_alone(recorded) -> None:
    for settings in (
        ("channel.rule=secure", "aggregation.weigh_on=client"),
        ("channel.rule=sums", "privacy.rule=central", "statistics.source=secure-sum"),
    ):
        recording, _ = recorded("fedmf", "aggregation.rule=uniform", "privacy.rule=none", *settings)
        transcript, contributions = recording.transcript, recording.contributions
        client, other = transcript.clients[:2]
        replaced = contributions.replaced(transcript, client, other)
        for t, sums in transcript.sums.items():
            assert np.abs(replaced.sums[t].total - sums.total).max() > 0
            np.testing.assert_allclose(replaced.sums[t].weights, sums.weights)
            assert replaced.sums[t].overall == sums.overall
            assert replaced.sums[t].clients == sums.clients


def test_clients_that_sit_rounds_out_are_attacked_by_the_rounds_they_were_in(recorded) -> None:
    settings = ("cohort.fraction=0.5", "model.learning_rate=0.2")
    transcript = recorded("fedrec", *settings)[0].transcript
    for client in transcript.clients:
        sent = transcript.uploads(client)
        assert len(sent) < len(transcript.rounds)
        orders = [one.order for one in sent]
        assert orders == sorted(set(orders))
    for attack in choices(Attack):
        for client, said in guesses(transcript, attack).items():
            uploaded = {one.round: one.upload.items for one in transcript.uploads(client)}
            for guess in said:
                assert np.array_equal(guess.items, uploaded[guess.round])
                assert len(guess.ratings) == len(guess.rated) == len(guess.items)
                assert np.isfinite(guess.rated).all()


def test_recording_leaves_the_training_as_it_is() -> None:
    problem = small_problem("fedrec+private")
    *_, (last, _) = rounds(engine_of(problem.config), problem)
    assert np.array_equal(record(problem, 12, users=30).state.server.V, last.server.V)
    fewer = replace(problem, config=replace(problem.config, seed=1))
    assert not np.array_equal(record(fewer, 12, users=30).state.server.V, last.server.V)


@pytest.mark.parametrize(("total", "recorded_rounds"), [(200, 20), (100, 20), (10, 20), (50, 3), (30, 1), (5, 5)])
def test_rounds_are_recorded_from_the_first_to_the_last(total: int, recorded_rounds: int) -> None:
    chosen = schedule(total, recorded_rounds)
    assert len(chosen) == min(total, recorded_rounds)
    assert chosen[0] == 0
    assert chosen[-1] == (total - 1 if recorded_rounds > 2 else 0)
    assert list(chosen) == sorted(set(chosen))
