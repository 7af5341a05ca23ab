"""``--channel`` and ``--rows``: the same as two settings, and refused with the reason where they make no sense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import assign, load_config, preset, with_channel
from fedrecplus.errors import UserError
from tests.cli.refusing import refused

TRAIN = ["train", "--dataset", "ratings.csv", "--algorithm"]
SHORT = ["--set", "server.rounds=2", "--set", "engine=reference"]

REFUSED = {
    "an unknown channel": ([*TRAIN, "fedmf", "--channel", "secrue"], "unknown channel"),
    "rows of uploads that are seen": ([*TRAIN, "fedmf", "--rows", "whole"], "add --channel"),
    "rows that there are not": ([*TRAIN, "fedmf", "--channel", "he", "--rows", "half"], "choose one of whole"),
    "single rows in ciphertexts": ([*TRAIN, "fedmf", "--channel", "he", "--rows", "rows"], "the rows of many items"),
    "noise on sums that everybody decrypts": (
        [*TRAIN, "fedmf", "--channel", "he", "--epsilon", "10"],
        "before any noise",
    ),
    "a rule that needs single uploads": (
        [*TRAIN, "fedmf", "--channel", "sums", "--set", "aggregation.rule=krum"],
        "needs single uploads",
    ),
    "clients that can't know the mean": (
        [*TRAIN, "fedrec+", "--channel", "sums", "--set", "aggregation.global_step=mean"],
        "aggregation.global_step=last",
    ),
    "weights by a server that sees sums": (
        [*TRAIN, "fedrec+", "--channel", "sums", "--set", "aggregation.weigh_on=server"],
        "aggregation.weigh_on=client",
    ),
    "a training in one place": ([*TRAIN, "pmf", "--channel", "sums"], "nothing is uploaded"),
    "a comparison with one in one place": (
        ["compare", "--dataset", "ratings.csv", "--algorithm", "fedmf,pmf", "--channel", "sums"],
        "nothing is uploaded",
    ),
    "an audit of rows that are no choice": (
        ["audit", "--algorithm", "fedmf", "--dataset", "ratings.csv", "--rows", "rows"],
        "--rows",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_with_the_reason(
    what: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(REFUSED[what][0], REFUSED[what][1], here, capsys)


def test_the_options_are_short_for_settings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN, "fedrec+", "--channel", "sums", *SHORT, "--out", "short"]) == 0
    long = ["--set", "channel.rule=sums", "--set", "aggregation.weigh_on=client"]
    assert exit_code_of([*TRAIN, "fedrec+", *long, *SHORT, "--out", "long"]) == 0
    capsys.readouterr()
    assert load_config("short/config.toml") == load_config("long/config.toml")
    results = [json.loads((here / name / "result.json").read_text()) for name in ("short", "long")]
    assert results[0]["rmse"] == results[1]["rmse"]


def test_a_resumed_run_keeps_its_channel(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*TRAIN, "fedmf", "--channel", "sums", *SHORT, "--out", "run"]) == 0
    assert exit_code_of(["train", "--resume", "--out", "run"]) == 0
    capsys.readouterr()
    assert load_config("run/config.toml").channel.rule == "sums"


def test_python_has_the_same() -> None:
    by_name = assign(preset("fedrec+"), ["channel.rule=sums", "aggregation.weigh_on=client"])
    assert with_channel(preset("fedrec+"), "sums") == by_name
    with pytest.raises(UserError, match="shows the server every upload"):
        with_channel(preset("fedrec+"), rows="whole")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], ("clear", "rows", None)),
        (["--channel", "shares", "--rows", "blocks"], ("shares", "blocks", "skipped")),
        (["--channel", "he", "--set", "channel.cryptography=computed"], ("he", "whole", "computed")),
    ],
    ids=["clear", "shares", "he"],
)
def test_results_name_the_channel_the_rows_and_whether_cryptography_was_real(
    more: list[str], said: tuple[str | None, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--set", "server.rounds=1", "--set", "engine=reference", "--set", "model.factors=2"]
    assert exit_code_of([*TRAIN, "fedrec+", *more, *small, "--out", "run"]) == 0
    capsys.readouterr()
    result = json.loads((here / "run" / "result.json").read_text())
    assert tuple(result[name] for name in ("channel", "rows_sent", "masks")) == said
    assert result["privacy"] is None
