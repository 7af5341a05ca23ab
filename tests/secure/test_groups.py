"""Random groups with a sum each: few who spoil or promote do little to everybody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.poisoning import SAID, Attack, outcome
from fedrecplus import data
from fedrecplus.config import assign, check, preset
from fedrecplus.errors import UserError
from fedrecplus.experiments.validation import Cut, tuning_cut
from fedrecplus.parts.channel import Grouping, RingLayout, cohort_bytes, joined
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.messages import VERSION, Advertisement, Neighbourhood, Refused, pack, unpack
from fedrecplus.protocol import Sums
from fedrecplus.testing.example import example_config
from tests.secure.test_add_up import changes, in_both_engines

ROUND = Grouping(4, b"a task and a round")
SHARES = np.linspace(0.1, 0.9, 40)
"""of people who rated each of forty items"""


def honest(group: int, clients: int = 12) -> Sums:
    """What a group's honest contributions add up to: of random directions, as many as are expected."""
    dice = np.random.default_rng(group)
    total = dice.normal(size=(len(SHARES), 8)) * np.sqrt(clients * SHARES)[:, None]
    return Sums(total, clients * SHARES, float(clients), clients, statistic=np.full(3, float(clients)))


def test_everybody_is_in_one_group_and_groups_change_from_round_to_round() -> None:
    clients = list(range(100, 196))
    first, second = (Grouping(8, bytes([number])).of(clients) for number in (0, 1))
    for groups in (first, second):
        assert sorted(np.concatenate(groups).tolist()) == list(range(96))
        assert {len(group) for group in groups} == {12}
    assert any(not np.array_equal(one, other) for one, other in zip(first, second, strict=True))


def sharing(numbers: list[int], told: list[int], group: set[int], grouping: Grouping | None = ROUND) -> bytes:
    """What a client answers, told that these are the cohort and that its group."""
    layout, least = RingLayout(4, 2, 32), 2
    clients = {one: SecureClient(one, b"s" * 16, layout, None, least, grouping=grouping) for one in numbers}
    adverts = {one: unpack(Advertisement, client.advertise(), b"s" * 16) for one, client in clients.items()}
    me = numbers[0]
    others = b"".join(adverts[one].record() for one in sorted(group - {me}))
    near = Neighbourhood(VERSION, b"s" * 16, (len(group) - 1) // 2 + 1, len(group), others, cohort_bytes(told))
    return clients[me].share(pack(near))


def test_a_client_shares_secrets_in_the_group_that_the_cohort_says_and_in_no_other() -> None:
    numbers = list(range(1, 25))
    group = ROUND.group_of(1, numbers)
    assert len(group) == 6
    assert sharing(numbers, numbers, group)
    stranger = next(one for one in numbers if one not in group)
    swapped = {*sorted(group - {1})[1:], stranger, 1}
    for told, of, why in [
        (numbers, swapped, "another group"),
        (numbers, set(numbers), "another group"),
        (numbers[:-1], group, "another group"),
        (numbers[1:], group, "a cohort without this client"),
        ([1, *numbers], group, "somebody twice"),
        (numbers[::-1], group, "out of order"),
        ([], group, "a cohort without this client"),
    ]:
        with pytest.raises(Refused, match=why):
            sharing(numbers, told, of)
    with pytest.raises(Refused, match="one sum of all was asked for"):
        sharing(numbers, numbers, set(numbers), grouping=None)


def test_groups_that_are_alike_are_added_up() -> None:
    groups = [honest(number) for number in range(8)]
    sums, odd = joined(groups, SHARES)
    assert odd == []
    assert (sums.clients, sums.overall) == (96, 96.0)
    np.testing.assert_allclose(sums.total, sum(group.total for group in groups), rtol=0.2, atol=1.0)


@pytest.mark.parametrize("what", ["total", "statistic"])
@pytest.mark.parametrize("by", [8.0, 1e6, np.inf])
def test_a_group_that_somebody_spoils_is_left_out_with_its_weights(what: str, by: float) -> None:
    groups = [honest(number) for number in range(8)]
    spoiled = [*groups[:3], replace(groups[3], **{what: getattr(groups[3], what) * by}), *groups[4:]]
    sums, odd = joined(spoiled, SHARES)
    assert odd == [3]
    assert sums.clients == 84
    np.testing.assert_allclose(sums.total, joined([*groups[:3], *groups[4:]], SHARES)[0].total, atol=0.5)


@pytest.mark.parametrize(
    ("what", "said"), [("clients", 1_000_000), ("clients", 1), ("overall", 1e-3), ("overall", -5.0), ("overall", 1e4)]
)
def test_a_group_that_says_of_itself_what_no_other_does_is_left_out(what: str, said: float) -> None:
    """Of a million persons every bound would be wide, and what few weights divide is a step without end."""
    groups = [honest(number) for number in range(8)]
    sums, odd = joined([*groups[:3], replace(groups[3], **{what: said}), *groups[4:]], SHARES)
    assert odd == [3]
    assert (sums.clients, sums.overall) == (84, 84.0)


def test_a_row_moves_no_farther_than_so_many_honest_people_could_have_moved_it() -> None:
    groups = [honest(number) for number in range(8)]
    pushed = groups[0].total.copy()
    pushed[5] = 8.0
    sums, odd = joined([replace(groups[0], total=pushed), *groups[1:]], SHARES)
    plain, _ = joined(groups, SHARES)
    moved = np.linalg.norm(sums.total - plain.total, axis=1)
    assert odd == []
    assert moved[5] < 2 * 2.5 * np.sqrt(8 * 12 * SHARES[5]) < np.linalg.norm(pushed[5])
    assert np.delete(moved, 5).max() < 0.2 * np.linalg.norm(plain.total, axis=1).max()


def test_groups_are_summed_alike_in_both_engines_and_cost_what_they_are() -> None:
    small = ("channel.groups=3", "channel.least_cohort=3", "channel.fewest_contributors=1")
    config = example_config(*changes("wasserstein", "joint", "whole", *small))
    (((slow, cost), (quick, quick_cost)),) = in_both_engines(config)
    np.testing.assert_allclose(quick.total, slow.total, atol=1e-6)
    assert slow.total.any()
    assert quick_cost.bytes_up == cost.bytes_up


@pytest.mark.slow
def test_one_of_96_who_spoils_or_promotes_does_little() -> None:
    config = assign(preset("fedrec+secure"), ["channel.groups=8", "channel.fewest_contributors=1"])
    whole = tuning_cut(data.load("ml-100k"))
    where = Cut(*(part.where(part.client_of_rating < 95) for part in (whole.fitted, whole.held_out)))
    clean = outcome(where, config, Attack("none"), None)[0]
    spoiled = outcome(where, config, Attack("spoil", 1), None)[0]
    promoted = outcome(where, config, Attack("promote", 1), None)[0]
    lying = [outcome(where, config, Attack("promote", 1, says=says), None)[0] for says in SAID]
    assert max(one.rmse for one in (spoiled, *lying)) < clean.rmse + 0.005
    assert max(one.reached for one in (promoted, *lying)) <= 0.02
    assert {one.why for one in lying} == {""}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 3])
def test_five_of_a_hundred_bring_no_film_into_lists_of_others(seed: int) -> None:
    """FedRecAttack, with several films: a film says little, and so does a draw of groups."""
    config = assign(preset("fedrec+secure"), ["channel.groups=8", "channel.fewest_contributors=1", f"seed={seed}"])
    whole = tuning_cut(data.load("ml-100k"))
    where = Cut(*(part.where(part.client_of_rating < 95) for part in (whole.fitted, whole.held_out)))
    for film in (0, 60, 150):
        assert outcome(where, config, Attack("fedrecattack", 5, film=film), None)[0].reached <= 0.05


@pytest.mark.parametrize("rule", ["central", "distributed"])
def test_groups_beside_a_budget_are_refused_with_a_remedy(rule: str) -> None:
    settings = ["channel.groups=4", "channel.bits=32", "aggregation.rule=uniform", f"privacy.rule={rule}"]
    with pytest.raises(UserError, match="noise is planned for one sum") as refused:
        check(assign(preset("fedrec+secure"), settings))
    assert "channel.groups=1" in str(refused.value.for_shell)


def test_a_row_pushed_in_many_groups_is_held_to_what_rows_of_its_peers_are() -> None:
    """In each group it is no longer than an honest one could be, and no group is odd."""
    groups = [honest(group) for group in range(8)]
    alone, _ = joined(groups, SHARES)
    row = 3
    for place, group in enumerate(groups[:4]):
        pushed = group.total.copy()
        pushed[row] += 2.0 * np.linalg.norm(group.total[row]) * np.eye(8)[0]
        groups[place] = replace(group, total=pushed)
    together, odd = joined(groups, SHARES)
    assert odd == []
    lengths, before = (np.linalg.norm(sums.total, axis=1) for sums in (together, alone))
    assert lengths[row] <= 1.5 * np.median(before) * 1.05
    np.testing.assert_allclose(np.delete(lengths, row), np.delete(before, row), rtol=0.1)
