"""The secure sum is the plain sum, whoever vanishes up to the threshold, and is refused or aborted otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings, strategies as st

from fedrecplus.parts.channel import RingLayout, too_few
from fedrecplus.parts.channel.secure import graph, messages, shamir
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.messages import Refused
from fedrecplus.parts.channel.secure.server_state import Aborted, ServerOptions
from fedrecplus.parts.channel.secure.stages import share
from tests.secure.cohort import SESSION, Cohort, assert_equal

WHOLE = RingLayout(12, 3, 16, 2)
LAYOUTS = [RingLayout(12, 3, bits, 2, block) for bits in (16, 32) for block in (0, 1, 5)]
STAGES = ("advertise", "share", "mask", "consent", "reveal")


def flipped(data: bytes, place: int = -1) -> bytes:
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("pinned", [False, True])
def test_the_sum_is_the_plain_sum(layout: RingLayout, pinned: bool) -> None:
    cohort = Cohort(7, layout, pinned).until("done")
    assert cohort.server.survivors == tuple(range(7))
    assert_equal(cohort.server.total, cohort.plain())


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(3, 11),
    places=st.lists(st.sampled_from(STAGES), max_size=6),
    layout=st.sampled_from(LAYOUTS),
    pinned=st.booleans(),
)
def test_whoever_vanishes_the_sum_is_right_or_there_is_none(
    count: int, places: list[str], layout: RingLayout, pinned: bool
) -> None:
    vanish: dict[str, list[int]] = {}
    for client, stage in enumerate(places[:count]):
        vanish.setdefault(stage, []).append(client)
    cohort = Cohort(count, layout, pinned)
    try:
        cohort.until("done", vanish)
    except Aborted:
        assert not cohort.server.total.updates.any(), "an aborted sum keeps nothing"
        return
    except Refused:  # a client that is told of too few others goes no further
        return
    in_time = sum(len(vanish.get(stage, ())) for stage in STAGES[:3])
    assert len(cohort.server.survivors) == count - in_time
    assert_equal(cohort.server.total, cohort.plain())


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("pinned", [False, True])
def test_up_to_the_threshold_clients_may_vanish_before_every_stage_and_no_more(stage: str, pinned: bool) -> None:
    if stage == "consent" and not pinned:
        return
    count, threshold = 10, 7 if pinned else 5
    spare = count - 1 - threshold
    if stage == "advertise":  # those are not in the cohort at all
        spare = count - 2
    cohort = Cohort(count, WHOLE, pinned).until("done", {stage: range(spare)})
    assert_equal(cohort.server.total, cohort.plain())
    with pytest.raises((Aborted, Refused)):
        Cohort(count, WHOLE, pinned).until("done", {stage: range(spare + 1)})


def test_a_large_cohort_has_few_neighbours_and_the_same_sum() -> None:
    cohort = Cohort(110, RingLayout(6, 2, 16)).until("done", {"share": [3, 50], "mask": [7, 8], "reveal": [20, 21]})
    assert cohort.server.plan is not None
    assert cohort.server.plan.neighbours < 40
    assert_equal(cohort.server.total, cohort.plain())


def test_a_masked_vector_is_nothing_but_noise() -> None:
    cohort = Cohort(4, RingLayout(400, 20, 16)).until("mask")
    data = messages.unpack(messages.MaskedVector, cohort.answer(0), SESSION).data
    counts = np.bincount(np.frombuffer(data, np.uint8), minlength=256)
    expected = len(data) / 256
    assert ((counts - expected) ** 2 / expected).sum() < 380  # χ² with 255 degrees of freedom: p ≈ 10⁻⁶


@pytest.mark.parametrize("stage", STAGES)
def test_a_client_that_restarts_between_stages_goes_on(stage: str) -> None:
    cohort = Cohort(5, WHOLE, pinned=True).until(stage)
    for client in range(5):
        cohort.restart(client)
    cohort.until("done")
    assert_equal(cohort.server.total, cohort.plain())


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_question_gets_the_same_answer_even_after_a_restart(stage: str) -> None:
    cohort = Cohort(5, WHOLE, pinned=True).until(stage)
    first = cohort.answer(2)
    cohort.restart(2)
    assert cohort.answer(2) == first


def test_a_client_shares_its_secrets_in_one_neighbourhood_only() -> None:
    cohort = Cohort(5, WHOLE).until("share")
    client, asked = cohort.clients[0], cohort.asked[0]
    client.share(asked)
    message = messages.unpack(messages.Neighbourhood, asked, SESSION)
    fewer = msgspec.structs.replace(message, threshold=4)
    with pytest.raises(Refused, match="already"):
        client.share(messages.pack(fewer))


def test_a_client_masks_one_vector_only() -> None:
    cohort = Cohort(5, WHOLE).until("mask")
    cohort.answer(0)
    with pytest.raises(Refused, match="already"):
        cohort.clients[0].mask(cohort.asked[0], cohort.vector(1))


def test_a_client_never_gives_a_share_of_both_secrets_of_a_neighbour() -> None:
    cohort = Cohort(6, WHOLE).until("reveal")
    client, told = cohort.clients[0], cohort.survivors[0]
    client.reveal(told)
    without = messages.pack(messages.Survivors(messages.VERSION, SESSION, 5, messages.to_bits([True] * 5 + [False])))
    with pytest.raises(Refused, match="already"):
        client.reveal(without)


def test_with_pinned_identities_nobody_reveals_what_the_others_have_not_signed() -> None:
    cohort = Cohort(6, WHOLE, pinned=True).until("consent")
    lie = messages.pack(messages.Survivors(messages.VERSION, SESSION, 5, messages.to_bits([True] * 5 + [False])))
    cohort.clients[0].consent(lie)
    for client in range(1, 6):
        cohort.server.take(client, cohort.clients[client].consent(cohort.asked[client]))
    signed = cohort.server.close()
    for survivors in (lie, cohort.survivors[1]):
        with pytest.raises(Refused, match=r"signature|signed"):
            cohort.clients[0].reveal(survivors, signed[1])
    with pytest.raises(Refused, match="signed"):
        cohort.clients[1].reveal(
            cohort.survivors[1], messages.pack(messages.Consents(messages.VERSION, SESSION, b"\0", b""))
        )


def test_a_consent_is_about_people_and_not_about_places_in_a_list() -> None:
    """The server tells half of the clients of other neighbours: the same bits would stand for other people."""
    cohort = Cohort(7, WHOLE, pinned=True)
    cohort.stage()
    adverts = {client: advert.record() for client, advert in cohort.server.adverts.items()}

    def hear_of(client: int, others: list[int]) -> None:
        records = b"".join(adverts[other] for other in others if other != client)
        told = messages.Neighbourhood(messages.VERSION, SESSION, 4, len(others), records)
        cohort.clients[client].share(messages.pack(told))

    first, second = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 6]
    for client in range(5):
        hear_of(client, first if client < 3 else second)
    everybody = messages.pack(messages.Survivors(messages.VERSION, SESSION, 6, messages.to_bits([True] * 6)))
    signed = []
    for client in range(5):
        cohort.clients[client].state.done["mask"] = b"it has sent a vector"
        signed.append(messages.unpack(messages.Consent, cohort.clients[client].consent(everybody), SESSION).signature)
    near = messages.to_bits([True] * 4 + [False])
    with pytest.raises(Refused, match="client 3: the signature"):
        cohort.clients[0].reveal(
            everybody, messages.pack(messages.Consents(messages.VERSION, SESSION, near, b"".join(signed[1:])))
        )


def test_with_pinned_identities_keys_of_somebody_else_are_refused() -> None:
    cohort = Cohort(4, WHOLE, pinned=True)
    assert cohort.pins is not None
    stranger = SecureClient(1, SESSION, WHOLE, None, 2, 1, Ed25519PrivateKey.generate(), cohort.pins)
    with pytest.raises(Refused, match="pinned identity"):
        cohort.server.take(1, stranger.advertise())
    cohort.stage()
    told = messages.unpack(messages.Neighbourhood, cohort.asked[0], SESSION)
    forged = msgspec.structs.replace(told, records=flipped(told.records))
    with pytest.raises(Refused, match="pinned identity"):
        cohort.clients[0].share(messages.pack(forged))


def test_with_pinned_identities_or_rows_that_differ_everybody_is_a_neighbour() -> None:
    for layout, pinned, reason in ((WHOLE, True, "lying server"), (RingLayout(12, 3, 16, 2, 1), False, "rows differ")):
        cohort = Cohort(5, layout, pinned).until("share")
        message = messages.unpack(messages.Neighbourhood, cohort.asked[0], SESSION)
        with pytest.raises(Refused, match=reason):
            cohort.clients[0].share(messages.pack(msgspec.structs.replace(message, cohort=9)))


@pytest.mark.parametrize("threshold", [2, 5])
def test_a_client_refuses_a_threshold_that_lets_two_halves_restore_both_secrets(threshold: int) -> None:
    cohort = Cohort(5, WHOLE).until("share")
    message = messages.unpack(messages.Neighbourhood, cohort.asked[0], SESSION)
    with pytest.raises(Refused, match="threshold"):
        cohort.clients[0].share(messages.pack(msgspec.structs.replace(message, threshold=threshold)))


def test_a_small_cohort_is_refused_by_the_server_and_by_a_client() -> None:
    with pytest.raises(Aborted, match="at least 6"):
        Cohort(5, WHOLE, options=ServerOptions(least_cohort=6)).until("share")
    cohort = Cohort(5, WHOLE)
    cohort.clients[0] = SecureClient(0, SESSION, WHOLE, least_cohort=6)
    cohort.stage()
    with pytest.raises(Refused, match="at least 6"):
        cohort.clients[0].share(cohort.asked[0])


def garbled(dealer: int, *receivers: int) -> Callable[[int, bytes], bytes]:
    """What a client deals to these neighbours opens for nobody."""

    def change(client: int, said: bytes) -> bytes:
        if client != dealer:
            return said
        message, size = messages.unpack(messages.SealedShares, said, SESSION), share.SEALED_BYTES
        pieces = messages.cut(message.sealed, len(message.sealed) // size, size)
        near = [other for other in range(len(pieces) + 1) if other != dealer]
        sealed = (flipped(piece) if other in receivers else piece for other, piece in zip(near, pieces, strict=True))
        return messages.pack(msgspec.structs.replace(message, sealed=b"".join(sealed)))

    return change


@pytest.mark.parametrize(
    ("dealer", "receivers", "blamed"), [(3, range(8), {3}), (3, (0, 1), {3}), (3, (0,), {0, 3}), (0, (1, 2, 3), {0})]
)
def test_shares_that_dont_open_are_complained_of_and_their_dealer_is_blamed(
    dealer: int, receivers: Iterable[int], blamed: set[int]
) -> None:
    """One against many stands alone; one against one, nobody can tell which of them lies, and both go."""
    cohort = Cohort(8, WHOLE).until("share")
    cohort.stage(change=garbled(dealer, *receivers))
    with pytest.raises(Aborted, match="don't open"):
        cohort.stage()
    assert cohort.server.blamed.keys() == blamed
    again = Cohort(8, WHOLE).until("done", {"advertise": blamed})
    assert_equal(again.server.total, again.plain())


def test_who_complains_of_everybody_is_blamed_alone() -> None:
    cohort = Cohort(8, WHOLE).until("mask")

    def lie(client: int, said: bytes) -> bytes:
        everybody = messages.to_bits([True] * 7)
        complaint = messages.Complaint(messages.VERSION, SESSION, messages.to_bytes(client), everybody)
        return messages.pack(complaint) if client == 5 else said

    with pytest.raises(Aborted):
        cohort.stage(change=lie)
    assert cohort.server.blamed.keys() == {5}


def test_who_complained_masks_nothing_in_this_sum() -> None:
    cohort = Cohort(5, WHOLE).until("mask")
    right, wrong = cohort.asked[0], cohort.asked[1]
    said = cohort.clients[0].mask(wrong, cohort.vector(0))
    assert messages.unpack(messages.Complaint, said, SESSION).dealers
    with pytest.raises(Refused, match="already"):
        cohort.clients[0].mask(right, cohort.vector(0))


def test_a_dealer_of_shares_that_restore_nothing_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    split, dealt = shamir.split, list[int]()

    def crooked(secret: bytes, count: int, *how: Any) -> list[bytes]:
        dealt.append(count)
        other = os.urandom(32) if len(dealt) <= 2 else secret  # of the first client: both secrets
        return split(other, count, *how)

    monkeypatch.setattr(shamir, "split", crooked)
    cohort = Cohort(8, WHOLE).until("share")
    for client in (2, 0, 1, 3, 4, 5, 6, 7):
        cohort.server.take(client, cohort.answer(client))
    cohort.asked = cohort.server.close()
    cohort.until("reveal")
    with pytest.raises(Aborted, match="client 2 restore nothing"):
        cohort.stage()
    assert cohort.server.blamed.keys() == {2}


@pytest.mark.parametrize("pinned", [False, True])
def test_where_everybody_is_a_neighbour_survivors_are_counted_and_the_server_is_not_believed(pinned: bool) -> None:
    cohort = Cohort(20, WHOLE, pinned)
    for client in cohort.clients.values():
        client.state.honest = 0.95
    cohort.until("consent" if pinned else "reveal", {"mask": range(14, 20)})
    message = messages.unpack(messages.Survivors, cohort.survivors[0], SESSION)
    assert message.count == 14
    lie = messages.pack(msgspec.structs.replace(message, count=19))
    with pytest.raises(Refused, match="14 of 20 survived"):
        cohort.clients[0].consent(lie) if pinned else cohort.clients[0].reveal(lie)


@pytest.mark.parametrize("stage", STAGES)
def test_the_server_takes_one_message_a_stage_of_each_client_that_it_asked(stage: str) -> None:
    cohort = Cohort(6, WHOLE, pinned=True).until(stage)
    said = cohort.answer(0)
    cohort.server.take(0, said)
    cohort.server.take(0, said)  # the wire may deliver twice
    for sender, data, reason in (
        (0, flipped(said), "already"),
        (99, said, "not asked"),
        (1, said, "in the name of"),
        (2, said[:-1], "no "),
        (3, flipped(said, 5), "session"),
    ):
        with pytest.raises(Refused, match=reason):
            cohort.server.take(sender, data)
    assert len(cohort.server.refused) == 5


def test_two_clients_with_one_key_are_refused() -> None:
    cohort = Cohort(5, WHOLE)
    same = os.urandom(32)
    twins = [SecureClient(number, SESSION, WHOLE, random_bytes=lambda _: same) for number in (0, 1)]
    cohort.server.take(0, twins[0].advertise())
    with pytest.raises(Refused, match="somebody else"):
        cohort.server.take(1, twins[1].advertise())


@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("field", "content", "reason"),
    [
        ("signature", b"x", "signature"),
        ("sender", bytes(9), "sender of 9 bytes"),
        ("cipher_key", bytes(32), "low order"),
        ("mask_key", bytes(32), "low order"),
        ("mask_key", bytes(31), "length"),
        ("mask_key", None, "one key for both"),
    ],
)
def test_an_unsound_advertisement_is_refused_by_name_and_the_others_go_on(
    field: str, content: bytes | None, reason: str, pinned: bool
) -> None:
    cohort = Cohort(6, WHOLE, pinned)
    advert = messages.unpack(messages.Advertisement, cohort.clients[0].advertise(), SESSION)
    unsound = msgspec.structs.replace(advert, **{field: advert.cipher_key if content is None else content})
    with pytest.raises(Refused, match=f"client 0.*{reason}"):
        cohort.server.take(0, messages.pack(unsound))
    cohort.until("done", {"advertise": [0]})
    assert cohort.server.survivors == (1, 2, 3, 4, 5)
    assert_equal(cohort.server.total, cohort.plain())
    assert [client for client, _ in cohort.server.refused] == [0]


def test_vectors_of_another_length_are_refused() -> None:
    cohort = Cohort(5, WHOLE).until("mask")
    message = messages.unpack(messages.MaskedVector, cohort.answer(0), SESSION)
    with pytest.raises(Refused, match="bytes"):
        cohort.server.take(0, messages.pack(msgspec.structs.replace(message, data=message.data[:-4])))


def wrong_shares(*liars: int) -> Callable[[int, bytes], bytes]:
    """These clients reveal zeros."""

    def change(client: int, said: bytes) -> bytes:
        message = messages.unpack(messages.Reveal, said, SESSION)
        wrong = msgspec.structs.replace(message, shares=bytes(len(message.shares)))
        return messages.pack(wrong) if client in liars else said

    return change


def test_a_wrong_share_is_got_round_and_its_sender_named() -> None:
    cohort = Cohort(8, WHOLE).until("reveal", {"mask": [7]})
    cohort.stage(change=wrong_shares(0))
    assert_equal(cohort.server.total, cohort.plain())
    assert cohort.server.blamed.keys() == {0}


def test_too_many_wrong_shares_end_the_sum() -> None:
    cohort = Cohort(6, WHOLE).until("reveal")
    with pytest.raises(Aborted, match="wrong"):
        cohort.stage(change=wrong_shares(0, 1, 2, 3))
    assert not cohort.server.total.updates.any()
    with pytest.raises(Refused, match="over"):
        cohort.server.close()


def test_stages_come_in_order() -> None:
    client = SecureClient(0, SESSION, WHOLE)
    for call in (client.share, client.reveal):
        with pytest.raises(Refused, match="comes after"):
            call(b"")
    with pytest.raises(Refused, match="without pinned"):
        client.consent(b"")


def test_rows_that_too_few_survivors_span_are_not_unmasked() -> None:
    before, after = np.array([1, 4, 4, 9]), np.array([1, 1, 3, 8])
    assert too_few(before, after, 2).tolist() == [False, True, False, False]


def test_every_real_client_has_secrets_of_its_own() -> None:
    roots = {SecureClient(number, SESSION, WHOLE).state.root for number in range(20)}
    assert len(roots) == 20


@pytest.mark.parametrize(
    ("cohort", "neighbours", "taken"), [(6, 1, False), (99, 97, False), (108, 21, False), (108, 22, True)]
)
def test_a_server_that_chooses_neighbours_has_no_sum_of_a_pair(cohort: int, neighbours: int, taken: bool) -> None:
    """It could unmask everybody's sum with them apart: of two, were they told of no others, whatever the cohort."""
    session, others = Cohort(neighbours + 1, WHOLE), range(1, neighbours + 1)
    adverts = {number: messages.unpack(messages.Advertisement, one.advertise(), SESSION) for number, one in
               session.clients.items()}  # fmt: skip
    records = b"".join(adverts[number].record() for number in others)
    threshold = graph.least_threshold(neighbours, pinned=False)
    told = messages.pack(messages.Neighbourhood(messages.VERSION, SESSION, threshold, cohort, records))
    if taken:
        session.clients[0].share(told)
    else:
        with pytest.raises(Refused, match="could be unmasked apart"):
            session.clients[0].share(told)
