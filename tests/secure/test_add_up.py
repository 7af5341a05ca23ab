"""Sums of a training over the secure channel: masks computed or skipped, in either engine, the numbers are the same."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign, check
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import _summing
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.rounds import add_up, client_round, sums_of
from fedrecplus.testing.example import example_config, example_round, small_ratings

RULES = ("uniform", "wasserstein")
MODELS = ("mf", "biased-mf", "reconstruction")
WITH_STATISTIC = ("ials", "joint")
ROWS = ("whole", "blocks", "rows")
EVERY_PAIR = [(model, rows, RULES[(a + b) % 2]) for a, model in enumerate(MODELS) for b, rows in enumerate(ROWS)]
"""of a model, rows and a rule"""
SMALL = ("channel.statistic_bound=1000", "channel.least_cohort=5", "aggregation.weigh_on=client")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few items as here would be one block or two."""
    monkeypatch.setattr(_summing.RingSettings, "block_size", 4)


def changes(rule: str, model: str, rows: str, *more: str) -> tuple[str, ...]:
    wide = ("channel.bound=100",) if model == "biased-mf" else ()
    chosen = (f"aggregation.rule={rule}", f"model.rule={model}", "channel.rule=secure", f"channel.rows={rows}")
    return (*chosen, *SMALL, *wide, *more)


def assert_same(found: Sums, expected: Sums) -> None:
    np.testing.assert_array_equal(found.total, expected.total)
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.statistic, expected.statistic)
    assert (found.overall, found.clients) == (expected.overall, expected.clients)


def uploads_of(*settings: str) -> tuple[Config, list[Upload], Broadcast]:
    """Everybody's uploads of the example's first round, and what they were told."""
    problem, message, devices = example_round(*settings)
    return problem.config, [client_round(message, device, problem.config)[0] for device in devices], message


def both(config: Config, uploads: list[Upload], message: Broadcast) -> list[tuple[Sums, Traffic]]:
    return [
        add_up(uploads, message, assign(config, [f"channel.cryptography={masks}"])) for masks in ("skipped", "computed")
    ]


@pytest.mark.parametrize(("model", "rows", "rule"), EVERY_PAIR)
def test_skipped_masks_give_the_sums_and_the_bytes_of_computed_ones(model: str, rows: str, rule: str) -> None:
    for more in (("channel.bits=16",), ("channel.bits=32", "channel.dropout=0.2")):
        config, uploads, message = uploads_of(*changes(rule, model, rows, *more))
        (quick, quick_cost), (full, cost) = both(config, uploads, message)
        assert_same(quick, full)
        assert quick_cost == cost
        assert full.clients < len(uploads) or "dropout" not in more[-1]


def in_both_engines(config: Config, rounds: int = 1) -> Iterator[tuple[tuple[Sums, Traffic], tuple[Sums, Traffic]]]:
    """The sums of each round and what they cost: of the reference, and of the fast engine."""
    problem = prepare(small_ratings(), config)
    slow, quick = (engine_of(replace(config, engine=name)) for name in ("reference", "fast"))
    state = slow.start(problem)
    for _ in range(rounds):
        message, clients = message_of(problem, state), problem.cohort(state.server.round)
        told = [engine.sums(problem, state.private, message, clients) for engine in (slow, quick)]
        (expected, _, cost), (found, _, quick_cost) = told
        yield (expected, cost), (found, quick_cost)
        state, _ = slow.round(problem, state)


@pytest.mark.parametrize(
    ("model", "rows", "rule", "bits"),
    [
        *((*chosen, 16) for chosen in EVERY_PAIR),
        *itertools.product(WITH_STATISTIC, ["whole"], ["wasserstein"], [16, 32]),
    ],
)
def test_both_engines_add_the_same_whole_numbers(model: str, rows: str, rule: str, bits: int) -> None:
    config = example_config(*changes(rule, model, rows, f"channel.bits={bits}", "channel.dropout=0.1"))
    for (expected, cost), (found, quick_cost) in in_both_engines(config, rounds=2):
        assert expected.statistic.any() == (model in WITH_STATISTIC)
        assert_same(found, expected)
        assert quick_cost == cost


@pytest.mark.parametrize("model", ["fcf", "svdpp"])
def test_rows_of_all_items_and_rows_of_two_tables_are_summed_alike_in_both_engines(model: str) -> None:
    config = example_config(*changes("uniform", model, "whole", "channel.weights=sent", "channel.bound=100"))
    (((expected, _), (found, _)),) = in_both_engines(config)
    assert expected.total.any()
    np.testing.assert_allclose(found.total, expected.total, atol=1e-6)


def test_by_default_no_weights_of_rows_are_sent_and_public_counts_stand_for_them() -> None:
    config, uploads, message = uploads_of(*changes("uniform", "mf", "whole", "channel.fewest_contributors=1"))
    sums, cost = add_up(uploads, message, config)
    sent, dearer = add_up(uploads, message, assign(config, ["channel.weights=sent"]))
    np.testing.assert_allclose(sums.weights, message.public.popularity, rtol=1e-9)
    np.testing.assert_array_equal(sent.weights, message.public.popularity)
    assert dearer.bytes_up - cost.bytes_up == len(uploads) * len(message.V) * 4
    half, _ = add_up(uploads[:15], message, config)
    np.testing.assert_allclose(half.weights, 0.5 * message.public.popularity, rtol=1e-9)


def test_whatever_vanishes_both_ways_agree_on_the_sum_or_on_the_reason() -> None:
    usual, uploads, message = uploads_of(*changes("uniform", "mf", "whole"))
    aborted = 0
    for share in (0.1, 0.5, 0.9):
        for rows in ROWS:
            config = assign(usual, [f"channel.dropout={share}", f"channel.rows={rows}"])
            try:
                (quick, quick_cost), (full, cost) = both(config, uploads, message)
            except UserError:
                aborted += 1
                for masks in ("skipped", "computed"):
                    with pytest.raises(UserError, match="aborted"):
                        add_up(uploads, message, assign(config, [f"channel.cryptography={masks}"]))
                continue
            assert_same(quick, full)
            assert quick_cost == cost
    assert 0 < aborted < 9


def test_statistics_are_summed_too() -> None:
    config, made, message = uploads_of(*changes("uniform", "mf", "whole"))
    uploads = [replace(one, statistic=np.array([float(one.client), -1.5])) for one in made]
    (quick, _), (full, _) = both(config, uploads, message)
    assert_same(quick, full)
    np.testing.assert_allclose(full.statistic, sums_of(uploads, message, config).statistic, rtol=1e-5)


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_numbers_beyond_the_bound_are_clipped_and_nobody_drops_out(
    engine: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_summing, "_clipped_rounds", itertools.count(1))
    config = example_config(*changes("uniform", "mf", "whole"), f"engine={engine}")
    problem = prepare(small_ratings(), config)
    state = engine_of(config).start(problem)
    message, clients = message_of(problem, state), problem.cohort(0)
    uploads, _ = engine_of(config).uploads(problem, state.private, message, clients)
    largest = sorted(float(np.abs(upload.delta).max()) for upload in uploads)
    tight = assign(config, [f"channel.bound={(largest[-3] + largest[-4]) / 2}"])
    problem = prepare(small_ratings(), tight)
    with caplog.at_level(logging.WARNING, "fedrecplus"):
        sums, _, _ = engine_of(tight).sums(problem, state.private, message, clients)
    assert sums.clients == len(clients)
    assert "numbers of 3 clients are clipped" in caplog.text
    bound = tight.channel.settings.bound
    kept = [replace(upload, delta=np.clip(upload.delta, -bound, bound)) for upload in uploads]
    rows = sums.weights > 0
    np.testing.assert_allclose(sums.total[rows], sums_of(kept, message, tight).total[rows], atol=1e-6)


@pytest.mark.parametrize("model", ["mf", "joint"])
def test_both_engines_clip_alike(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_summing.RingSettings, "largest_weight", 0.5)
    tight = ("channel.bound=0.01", "channel.statistic_bound=0.01")
    config = assign(example_config(*changes("uniform", model, "whole")), list(tight))
    (((expected, _), (found, _)),) = in_both_engines(config)
    assert_same(found, expected)
    assert np.abs(expected.total).max() <= 0.01 * expected.clients
    assert expected.overall <= 0.5 * expected.clients


def test_rows_with_few_contributors_are_zeroed() -> None:
    config, uploads, message = uploads_of(*changes("uniform", "mf", "whole", "channel.fewest_contributors=6"))
    sums, _ = add_up(uploads, message, config)
    rare = message.public.popularity < 6
    assert rare.any()
    assert not sums.total[rare].any()
    assert not sums.weights[rare].any()
    assert sums.weights[~rare].all()


def test_whole_tables_need_no_pseudo_items() -> None:
    for rows, hides in (("whole", False), ("blocks", True), ("rows", True)):
        assert example_config(*changes("uniform", "mf", rows)).hides_rows == hides


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (("aggregation.weigh_on=server", "aggregation.rule=wasserstein"), "needs single uploads"),
        (("channel.rows=rows", "pseudo_items.rule=none"), "shows the server which items were rated"),
        (("channel.rows=blocks", "pseudo_items.rule=none"), "shows the server which items were rated"),
        (("channel.bits=24",), "no such ring"),
        (("model.rule=fcf",), "uploads rows of all items"),
        (("model.rule=fcf", "channel.rows=rows"), "no rows to leave out"),
        (("model.rule=fcf", "channel.rows=blocks"), "no rows to leave out"),
    ],
)
def test_combinations_that_make_no_sense_are_refused(changed: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        check(example_config("channel.rule=secure", "simulation_only=false", *changed))


@pytest.mark.parametrize("rule", ["secure", "shares", "he"])
@pytest.mark.parametrize(
    ("rows", "reason"), [("blocks", "no rows to leave out"), ("whole", "public counts say nothing")]
)
def test_models_that_upload_all_items_send_whole_tables_with_weights(rule: str, rows: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        check(example_config(f"channel.rule={rule}", "model.rule=fcf", f"channel.rows={rows}"))
    check(example_config(f"channel.rule={rule}", "model.rule=fcf", "channel.weights=sent"))


def test_uniform_weights_by_the_server_are_no_secret_and_allowed() -> None:
    check(example_config("channel.rule=secure", "aggregation.weigh_on=server"))


def test_a_cohort_under_the_minimum_is_refused() -> None:
    config = example_config("channel.rule=secure", "channel.least_cohort=31")
    with pytest.raises(UserError, match="a cohort of 30 clients is too small"):
        prepare(small_ratings(), config)
    shrunk = assign(config, ["channel.least_cohort=30", "cohort.dropout=0.2"])
    problem = prepare(small_ratings(), shrunk)
    with pytest.raises(UserError, match="at least 30 are needed"):
        engine_of(shrunk).round(problem, engine_of(shrunk).start(problem))
