"""Messages by the hundred thousand: right ones with bytes changed, cut, doubled or made up. None but sound ones pass.

Bytes are changed as fast as they can be read; at the end, Hypothesis draws structured messages. How many there are is
given by time, so that a slow machine takes no longer: the slow run has a minute.
"""

from __future__ import annotations

import contextlib
import random
import resource
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import VERSION, Packet, Refusal
from fedrecplus.deploy.wire.questions import WorkItem
from fedrecplus.deploy.wire.reply import decode_reply
from fedrecplus.deploy.wire.request import decode_request, encode_request
from fedrecplus.deploy.wire.sealing import SealingKey, seal
from fedrecplus.deploy.wire.stages import Stage, decode_stage_reply, encode_stage
from fedrecplus.parts.channel import RingLayout
from fedrecplus.parts.channel.secure.messages import Refused
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import ServerOptions
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, small_config
from tests.deploy.test_checks import EXPECTED, SELF_WEIGHED, packet
from tests.secure.cohort import SESSION, Cohort
from tests.small_data import small_ratings

SLOW_SECONDS = 50.0
MOST_MEGABYTES = 64
NUMBERS = [struct.pack("<q", value) for value in (0, 1, -1, 2**31, 2**62, -(2**63), 2**63 - 1)]
NUMBERS += [struct.pack("<d", value) for value in (np.inf, -np.inf, np.nan, 1e308, 5e-324)]
WORDS = [
    b"\xc0",
    b"\xc3",
    b"\xcb",
    b"\xdf\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\x91\x91\x91",
]
WORDS += [b"\xa7float32", b"\xa7float16", b"\xa6object", b"\xa5int64", b"\xcf" + b"\xff" * 8]
"""of MessagePack: nothing, true, lengths beyond the end, lists within lists, other kinds of numbers"""
Changed = Callable[[bytes, random.Random], bytes]


def flipped(content: bytes, draw: random.Random) -> bytes:
    """Some bytes are others."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        changed[draw.randrange(len(changed))] = draw.getrandbits(8)
    return bytes(changed)


def overwritten(content: bytes, draw: random.Random) -> bytes:
    """An extreme number or another word stands where something else stood."""
    at, word = draw.randrange(len(content)), draw.choice(NUMBERS if draw.random() < 0.6 else WORDS)
    return content[:at] + word + content[at + len(word) :]


def cut_short(content: bytes, draw: random.Random) -> bytes:
    """The end is missing."""
    return content[: draw.randrange(len(content))]


def doubled(content: bytes, draw: random.Random) -> bytes:
    """A piece comes twice."""
    begin, end = sorted((draw.randrange(len(content)), draw.randrange(len(content))))
    return content[:end] + content[begin:]


def made_up(content: bytes, draw: random.Random) -> bytes:
    """Nothing of it is left."""
    return draw.randbytes(draw.randint(0, len(content)))


CHANGES: list[Changed] = [flipped, flipped, flipped, overwritten, overwritten, cut_short, doubled, made_up]


def other_facts(draw: random.Random) -> bytes:
    """A packet that is well made, with facts of any kind."""
    values = [3, -1, 1e300, MODEL, True, None, [1], 2**63, "\udcff".encode("utf-8", "replace").decode(), {"a": 1}]
    names = ["version", "model", "round", "refusal", "squared_error", "rated", "session", "stage"]
    facts = {draw.choice(names): draw.choice(values) for _ in range(draw.randint(0, 5))}
    arrays = msgspec.msgpack.decode(packet().to_bytes())["arrays"]
    if draw.random() < 0.02:
        return b"\x82\xa5facts" + draw.choice([b"\x91", b"\x81\xa1a"]) * draw.randint(1, 5_000)
    return msgspec.msgpack.encode({"facts": {"version": VERSION, **facts}, "arrays": arrays})


def check_reply_of(content: bytes) -> bool:
    """What a server does with a reply: sound uploads come of it, or a refusal. Returns whether it was taken."""
    try:
        return is_taken(Packet.of_bytes(content))
    except Refusal:
        return False


def is_taken(found: Packet) -> bool:
    """Whether a reply is taken by the schema; all that is taken is sound."""
    taken = False
    for terms in (EXPECTED, SELF_WEIGHED):
        try:
            uploads, report = decode_reply(found, terms)
        except Refusal:
            continue
        taken = True
        assert len({upload.client for upload in uploads}) == len(uploads) <= terms.clients_per_node
        assert report is None or (0 <= report.squared < np.inf and report.ratings > 0)
        for upload in uploads:
            assert 0 <= upload.client < 2**62
            assert upload.delta.shape == (len(upload.items), 4)
            assert (np.diff(upload.items) > 0).all()
            assert upload.items[0] >= 0
            assert upload.items[-1] < 40
            weight = 1.0 if upload.weight is None else upload.weight
            assert 0.0 < weight < np.inf
            assert np.abs(upload.delta).max() <= 10.0 * weight, "finite, and within the bound"
    return taken


def replies() -> list[bytes]:
    weighed = packet()
    weighed.arrays["weights"] = np.array([1.0, 2.0])
    shared = packet()
    shared.facts.update(squared_error=3.5, rated=5)
    return [each.to_bytes() for each in (packet(), weighed, shared, packet(delta=np.full((5, 4), 0.1)))]


def fuzzed(seconds: float, seed: int) -> tuple[Counter[str], float]:
    """Feed changed messages to every reader for so long; how many each had, how many passed, and the seconds."""
    draw, counts, began = random.Random(seed), Counter[str](), time.perf_counter()
    feeders = list(_feeders())
    while time.perf_counter() - began < seconds:
        for name, contents, read, share in feeders:
            for _ in range(share):
                content = draw.choice(contents)
                content = draw.choice(CHANGES)(content, draw) if content else other_facts(draw)
                counts[f"{name} taken"] += read(content)
            counts[name] += share
    return counts, time.perf_counter() - began


def _feeders() -> Iterator[tuple[str, list[bytes], Callable[[bytes], bool], int]]:
    """Name, right messages (an empty one: facts of any kind), reader, and how many at a time."""
    yield "replies", [*replies(), b""], check_reply_of, 200
    yield "requests", [_request()], _reads_request, 2
    due = Stage(MODEL, 3, b"s" * 16, "mask")
    yield "stages", [encode_stage(due, b"m" * 90).to_bytes()], lambda content: _reads_stage(content, due), 60
    cohort = Cohort(6, RingLayout(10, 3, 32))
    adverts = [client.advertise() for client in cohort.clients.values()]
    yield "sums", adverts, lambda content: _reads_advert(content, cohort), 20
    question = WorkItem(7, 5, 1e9, b"k" * 32, packet().to_bytes(), {"tables": "ab" * 32})
    yield "questions", [msgspec.msgpack.encode(question)], _reads_question, 60
    key, context = SealingKey(), b"7 5"
    yield "sealed", [seal(b"answer", key.public, context)], lambda content: _opens(content, key, context), 5


def _request() -> bytes:
    config, catalogue = small_config(), ItemCatalogue.of(small_ratings())
    return encode_request(MODEL, start_server(config, catalogue.public), config, catalogue, attach=True).to_bytes()


def _reads_request(content: bytes) -> bool:
    try:
        request = decode_request(Packet.of_bytes(content))
    except Refusal:
        return False
    assert all(np.isfinite(table).all() for table in request.tables.values())
    return True


def _reads_stage(content: bytes, due: Stage) -> bool:
    try:
        message = decode_stage_reply(Packet.of_bytes(content), due, 100)
    except Refusal:
        return False
    assert len(message) <= 100
    return True


def _reads_advert(content: bytes, cohort: Cohort) -> bool:
    server = SecureServer(SESSION, cohort.layout, range(6), ServerOptions(least_cohort=3))
    for sender in range(2):
        with contextlib.suppress(Refused):
            server.take(sender, content)
            assert server.adverts[sender].number == sender, "nobody speaks in another's name"
            return True
    return False


def _reads_question(content: bytes) -> bool:
    with contextlib.suppress(msgspec.MsgspecError, ValueError, Refusal):
        question = msgspec.msgpack.decode(content, type=WorkItem)
        question.whole(lambda digest: b"", set(question.objects))
        return True
    return False


def _opens(content: bytes, key: SealingKey, context: bytes) -> bool:
    try:
        return key.open(content, context) == b"answer"
    except Refusal:
        return False


def check_fuzz(seconds: float, seed: int) -> tuple[Counter[str], float]:
    fuzzed(0.5, seed)  # what is imported and cached on first use is no growth
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts, took = fuzzed(seconds, seed + 1)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MOST_MEGABYTES, f"{grown:.0f} MB more than before"
    assert counts["replies taken"] > 0, "some changes are harmless, and the checks behind the schema see them"
    return counts, took


def test_changed_bytes_are_taken_by_the_schema_or_refused() -> None:
    check_fuzz(1.5, seed=1)


@pytest.mark.slow
def test_as_many_changed_messages_as_fit_into_a_minute_are_taken_by_the_schema_or_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts, took = check_fuzz(SLOW_SECONDS, seed=int(time.time()))
    whole = sum(count for name, count in counts.items() if not name.endswith("taken"))
    with capsys.disabled():
        print(f"\n{whole:,} messages in {took:.0f} s, {whole / took:,.0f} a second: {dict(counts)}")
    assert whole > 10_000


@pytest.mark.parametrize(
    "facts", [b"\x91" * 100_000, b"\x81\xa1a" * 50_000, b"\x91\x01", b"\x81\xa1a\x91\x01", b"\x81\xa1a\xc0"]
)
def test_facts_that_are_none_are_malformed(facts: bytes) -> None:
    """Lists within lists once ended the server's app: Python's reader follows them until the stack is full."""
    with pytest.raises(Refusal, match="malformed"):
        Packet.of_bytes(b"\x82\xa5facts" + facts + b"\xa6arrays\x80")


FACTS = st.dictionaries(
    st.sampled_from(["version", "model", "round", "refusal", "squared_error", "rated", "config", "session"]),
    st.one_of(st.just(VERSION), st.just(MODEL), st.just(3), st.integers(), st.floats(), st.text(max_size=8)),
    max_size=6,
)  # fmt: skip
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
KINDS = st.sampled_from([np.int8, np.int32, np.int64, np.uint64, np.float32, np.float64, np.bool_])
TABLES = st.dictionaries(
    st.sampled_from(["clients", "rows", "items", "delta", "weights", "V", "ratings"]),
    KINDS.flatmap(lambda kind: arrays.arrays(kind, SHAPES)),
    max_size=6,
)


def fuzz(packet: Packet) -> None:
    """Decode as a server and as a node would."""
    is_taken(packet)
    with contextlib.suppress(Refusal):
        decode_request(packet)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(FACTS, TABLES)
def test_any_message_is_taken_by_the_schema_or_refused(facts: dict[str, Any], tables: dict[str, Any]) -> None:
    fuzz(Packet(facts, tables))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.data(), st.integers(0, 4), st.integers(0, 6), st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_messages_that_are_nearly_right_are_taken_by_the_schema_or_refused(
    data: Any, persons: int, rows: int, kind: Any, whole: Any
) -> None:
    def table(dtype: Any, shape: Any, **more: Any) -> Any:
        return data.draw(arrays.arrays(dtype, shape, **more))

    counts = table(np.int32, persons, elements=st.integers(0, 3))
    total = int(counts.sum()) if data.draw(st.booleans()) else rows
    fuzz(
        Packet(
            {"version": VERSION, "model": MODEL, "round": 3},
            {
                "clients": table(np.int64, persons, elements=st.integers(-1, 2**62)),
                "rows": counts,
                "items": np.sort(table(whole, total, elements=st.integers(-1, 41))),
                "delta": table(kind, (total, 4)),
                **({"weights": table(np.float64, persons)} if data.draw(st.booleans()) else {}),
            },
        )
    )
