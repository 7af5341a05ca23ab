"""What is refused before it can touch the model, and what it is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrecplus.deploy.wire.packet import VERSION, Packet, Refusal
from fedrecplus.deploy.wire.reply import RoundTerms, decode_reply
from tests.deploy.in_process import MODEL, small_config

EXPECTED = RoundTerms(MODEL, 3, (40, 4), small_config(), clients_per_node=3, largest_change=10.0)
SELF_WEIGHED = replace(EXPECTED, config=small_config(aggregation__weigh_on="client"))


def packet(**changes: Any) -> Packet:
    """A sound answer of two persons, or one with an array changed or (None) left out."""
    arrays: dict[str, Any] = {
        "clients": np.array([7, 9]),
        "rows": np.array([2, 3], dtype=np.int32),
        "items": np.array([1, 5, 0, 5, 39], dtype=np.int32),
        "delta": np.full((5, 4), 0.1, dtype=np.float32),
    }
    arrays.update(changes)
    facts = {"version": VERSION, "model": MODEL, "round": 3}
    return Packet(facts, {name: table for name, table in arrays.items() if table is not None})


def test_a_sound_answer_becomes_uploads() -> None:
    uploads = decode_reply(packet(), EXPECTED)[0]
    assert [upload.client for upload in uploads] == [7, 9]
    assert [upload.items.tolist() for upload in uploads] == [[1, 5], [0, 5, 39]]
    assert uploads[1].delta.shape == (3, 4)


def test_an_answer_without_persons_is_sound() -> None:
    nobody = np.zeros(0, dtype=np.int32)
    assert decode_reply(packet(clients=nobody, rows=nobody, items=nobody, delta=np.zeros((0, 4))), EXPECTED)[0] == []


def _with(cell: Any) -> np.ndarray:
    delta = np.full((5, 4), 0.1, dtype=np.float64)
    delta[2, 1] = cell
    return delta


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "no delta": ("malformed", {"delta": None}),
    "no items": ("malformed", {"items": None}),
    "text for items": ("malformed", {"items": np.array(["1", "2", "3", "4", "5"])}),
    "items that are fractions": ("malformed", {"items": np.linspace(0, 1, 5)}),
    "delta of another width": ("malformed", {"delta": np.zeros((5, 3))}),
    "delta of another length": ("malformed", {"delta": np.zeros((4, 4))}),
    "delta with one axis": ("malformed", {"delta": np.zeros(20)}),
    "rows that don't add up": ("malformed", {"rows": np.array([2, 2])}),
    "rows that are negative": ("malformed", {"rows": np.array([-1, 6])}),
    "rows that overflow": ("malformed", {"rows": np.array([2**31 - 1, 2**31 - 1], dtype=np.int32)}),
    "an item twice": ("malformed", {"items": np.array([1, 1, 0, 5, 39])}),
    "items out of order": ("malformed", {"items": np.array([5, 1, 0, 5, 39])}),
    "a client twice": ("malformed", {"clients": np.array([7, 7])}),
    "a negative client": ("malformed", {"clients": np.array([-7, 7])}),
    "weights that nobody asked for": ("malformed", {"weights": np.ones(2)}),
    "an array that nobody asked for": ("malformed", {"ratings": np.ones(5)}),
    "too many persons": ("oversized", {"clients": np.arange(4)}),
    "more bytes than rows can have": ("oversized", {"ballast": np.zeros(10**6)}),
    "an item too far": ("out-of-range", {"items": np.array([1, 5, 0, 5, 40])}),
    "a negative item": ("out-of-range", {"items": np.array([-1, 5, 0, 5, 39])}),
    "NaN": ("non-finite", {"delta": _with(np.nan)}),
    "infinity": ("non-finite", {"delta": _with(-np.inf)}),
    "a great leap": ("out-of-range", {"delta": _with(11.0)}),
}


@pytest.mark.parametrize("name", WRONG)
def test_unsound_answers_are_refused_by_name(name: str) -> None:
    kind, changes = WRONG[name]
    with pytest.raises(Refusal) as refusal:
        decode_reply(packet(**changes), EXPECTED)
    assert refusal.value.kind == kind
    assert refusal.value.blame


@pytest.mark.parametrize(
    ("weights", "kind"),
    [
        (None, "malformed"),
        (np.ones(3), "malformed"),
        (np.array([1, 1]), "malformed"),
        (np.array([1.0, np.nan]), "non-finite"),
        (np.array([1.0, 0.0]), "out-of-range"),
        (np.array([1.0, -1.0]), "out-of-range"),
        (np.array([1.0, 1e13]), "out-of-range"),
    ],
)
def test_weights_are_looked_at_too(weights: np.ndarray | None, kind: str) -> None:
    with pytest.raises(Refusal) as refusal:
        decode_reply(packet(weights=weights), SELF_WEIGHED)
    assert refusal.value.kind == kind


def _other_fact(name: str, value: Any) -> Callable[[], Packet]:
    return lambda: Packet({**packet().facts, name: value}, packet().arrays)


@pytest.mark.parametrize(
    ("answer", "kind", "blame"),
    [
        (_other_fact("round", 2), "late", True),
        (_other_fact("model", "beef"), "malformed", True),
        (_other_fact("version", "fedrecplus 9.9.9, protocol 99"), "version", False),
        (_other_fact("version", None), "version", False),
        (_other_fact("refusal", "storage"), "node-storage", False),
        (_other_fact("refusal", "<script>"), "malformed", True),
    ],
)
def test_facts_are_looked_at_first(answer: Callable[[], Packet], kind: str, blame: bool) -> None:
    with pytest.raises(Refusal) as refusal:
        decode_reply(answer(), EXPECTED)
    assert (refusal.value.kind, refusal.value.blame) == (kind, blame)
    if kind == "version":
        assert "; this side runs fedrecplus" in str(refusal.value), "both versions are named"


def test_what_another_side_says_begins_no_line_of_a_log_and_moves_no_cursor() -> None:
    with pytest.raises(Refusal) as refusal:
        decode_reply(_other_fact("version", "9\nINFO round 7: all is well\x1b[2J")(), EXPECTED)
    assert "round 7: all is well" in str(refusal.value)
    assert str(refusal.value).isprintable()
