"""Claims that would mean nothing are refused, with the reason."""

from __future__ import annotations

import pytest

from fedrecplus.config import assign, check, preset, with_budget, with_channel
from fedrecplus.engines import prepare
from fedrecplus.errors import UserError
from tests.small_data import small_ratings


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (["privacy.clip=0"], "without clipping"),
        (["statistics.source=participants"], "exact counts and averages of the participants"),
        (["aggregation.rule=wasserstein", "aggregation.weigh_on=client"], "not the weights"),
        (["aggregation.normalise=cohort"], "not the weights"),
        (["pseudo_items.rule=similar", "channel.rule=clear"], "which rows a person uploads depends"),
        (["privacy.amplification=true", "cohort.fraction=0.5"], "claims amplification by sampling"),
        (["privacy.amplification=true", "cohort.sampling=poisson"], "claims amplification by sampling"),
        (["privacy.rule=distributed", "channel.rule=clear"], "one device's share of the noise hides nothing"),
        (["privacy.rule=distributed", "cohort.dropout=0.5"], "fewer devices answer"),
        (["privacy.rule=distributed", "channel.rule=secure", "channel.dropout=0.48"], "fewer devices answer"),
        (["channel.rule=secure", "channel.bits=16"], "rounding by chance after clipping"),
        (["privacy.rule=local", "privacy.clip=0"], "without clipping"),
    ],
)
def test_a_claim_that_means_nothing_is_refused(changes: list[str], reason: str) -> None:
    config = with_budget(preset("fedmf"), 10.0, 1e-5, "central", 3000)
    with pytest.raises(UserError, match=reason):
        check(assign(config, changes))


@pytest.mark.parametrize("noise", ["central", "distributed"])
def test_rounds_that_would_be_noised_by_another_plan_than_the_claim_s_are_refused(noise: str) -> None:
    config = with_budget(preset("fedrec+secure"), 10.0, 1e-5, noise, 3000)
    check(config)
    with pytest.raises(UserError, match="spend more than ε"):
        check(assign(config, ["model.rule=sequence"]))


def test_a_budget_sets_the_ring_to_32_bits() -> None:
    coarse = assign(with_channel(preset("fedmf"), "secure"), ["channel.bits=16"])
    config = with_budget(coarse, 10.0, 1e-5, "central", 3000)
    assert config.channel.settings.bits == 32
    check(config)


def test_delta_must_be_below_one_over_the_clients() -> None:
    ratings = small_ratings(clients=40)
    config = with_budget(preset("fedmf"), 10.0, 0.05, "central", ratings.clients)
    with pytest.raises(UserError, match=r"publishes all data of one random"):
        prepare(ratings, config)


def test_an_unknown_mechanism_is_named() -> None:
    with pytest.raises(UserError, match="central, distributed, local"):
        with_budget(preset("fedmf"), 10.0, 1e-5, "centre", 3000)


def test_poisson_cohorts_vary_in_size_and_fixed_ones_do_not() -> None:
    ratings = small_ratings(clients=40)
    sizes = {}
    for sampling in ("fixed", "poisson"):
        settings = ["cohort.fraction=0.5", f"cohort.sampling={sampling}"]
        problem = prepare(ratings, assign(preset("fedmf"), settings))
        sizes[sampling] = {len(problem.cohort(number)) for number in range(12)}
    assert sizes["fixed"] == {20}
    assert len(sizes["poisson"]) > 3
