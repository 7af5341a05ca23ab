"""A transcript holds what a server sees, as it was sent, and nothing else."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.audit.recording import schedule, uploads_of, watched
from fedrecplus.audit.transcript import Transcript, Writer
from fedrecplus.fast import simulate_round
from fedrecplus.protocol import Upload
from fedrecplus.rounds.server import server_round
from fedrecplus.simulation import start
from fedrecplus.simulation.reference import message_of
from tests.audit.conftest import small_problem


def test_recorded_uploads_are_those_that_the_round_applies() -> None:
    problem = small_problem("fedrec+private")
    state = start(problem)
    for _ in range(3):
        everybody = uploads_of(problem, state, problem.taking_part(state.server.round))
        after, _ = simulate_round(problem, state)
        assert pytest.approx(after.server.V, abs=1e-12) == server_round(state.server, everybody, problem.config).V
        state = after


def test_denoised_uploads_are_those_that_the_round_applies() -> None:
    problem = small_problem("fedrec++")
    state = start(problem)
    everybody = uploads_of(problem, state, problem.taking_part(0))
    after, _ = simulate_round(problem, state)
    assert pytest.approx(after.server.V, abs=1e-12) == server_round(state.server, everybody, problem.config).V


def test_uploads_are_read_as_they_were_written(recorded) -> None:
    recording, _ = recorded("fedrec+private")
    problem = small_problem("fedrec+private")
    transcript = recording.transcript
    state = start(problem)
    sent = {upload.client: upload for upload in uploads_of(problem, state, watched(problem, 30))}
    assert set(transcript.clients) == set(sent)
    for client in transcript.clients:
        first = transcript.uploads(client)[0]
        assert (first.round, first.order) == (0, 0)
        assert np.array_equal(first.upload.items, sent[client].items)
        assert first.upload.delta == pytest.approx(sent[client].delta, rel=1e-6, abs=1e-9)
    assert pytest.approx(state.server.V, rel=1e-6) == transcript.broadcast(0).V


def test_a_transcript_has_only_public_things_on_disk(recorded) -> None:
    recording, _ = recorded("fedrec+private")
    folder = recording.transcript.folder
    assert {path.name for path in folder.iterdir() if path.is_file()} == {"config.toml", "public.npz", "crowd.npz"}
    of_a_round = {path.stem for path in (folder / "000000").iterdir()}
    assert of_a_round == {
        "V", "last_step", "last_spread", "clients", "orders", "ends", "items", "delta", "weights", "denoised", "counts",
    }  # fmt: skip


def test_the_secret_seed_is_not_in_a_transcript(recorded) -> None:
    recording, config = recorded("fedrec+private", "seed=7")
    assert config.seed == 7
    assert recording.transcript.config.seed == 0


@pytest.mark.parametrize(("rounds", "recorded_rounds"), [(200, 20), (100, 20), (10, 20), (50, 3), (30, 1), (5, 5)])
def test_rounds_are_recorded_from_the_first_to_the_last(rounds: int, recorded_rounds: int) -> None:
    chosen = schedule(rounds, recorded_rounds)
    assert len(chosen) == min(rounds, recorded_rounds)
    assert chosen[0] == 0
    assert chosen[-1] == (rounds - 1 if recorded_rounds > 2 or rounds <= 2 else chosen[-1])
    assert list(chosen) == sorted(set(chosen))
    assert chosen[-1] < rounds


def test_what_is_held_in_memory_does_not_grow_with_the_rounds(tmp_path: Path) -> None:
    problem = small_problem("fedrec")
    message = message_of(problem, start(problem))
    writer = Writer(tmp_path, problem.config, problem.public, problem.mean, problem.ratings.scale.standard_step)
    items = np.tile(np.arange(120), 100)
    upload = Upload(0, items, np.zeros((len(items), message.V.shape[1])))
    size, rounds = upload.delta.nbytes, 20
    tracemalloc.start()
    for t in range(rounds):
        writer.write_round(replace(message, round=t), [upload], [t])
    transcript = Transcript(tmp_path)
    for t in range(rounds):
        assert transcript.broadcast(t).round == t
        sent = transcript._upload(t, 0)
        assert sent is not None
        assert len(sent.upload.items) == len(items)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * size, "twenty rounds were written and read"


def test_what_was_broadcast_is_mapped_and_not_held(tmp_path: Path) -> None:
    problem = small_problem("fedmf")
    writer = Writer(tmp_path, problem.config, problem.public, problem.mean, problem.ratings.scale.standard_step)
    message = message_of(problem, start(problem))
    large = np.tile(message.V, (100, 1))
    for t in range(10):
        writer.write_round(replace(message, round=t, V=large, last_step=large), [], [])
    transcript = Transcript(tmp_path)
    tracemalloc.start()
    held = [transcript.broadcast(t) for t in range(10)]
    assert np.array_equal(held[3].V, large.astype(np.float32))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < large.nbytes, "twenty such tables"
