"""Calibration against dp-accounting itself."""

from __future__ import annotations

import math
import sys

import dp_accounting
import pytest

from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import Release, ReleasePlan, epsilon_of, planned
from fedrecplus.parts.privacy._accounting import _dp_accounting


def test_one_gaussian_costs_what_the_analytic_formula_says() -> None:
    exact = dp_accounting.get_epsilon_gaussian(1.5, 1e-5)
    assert exact <= epsilon_of([Release(1.5)], 1e-5) <= 1.001 * exact


def test_gaussians_compose_as_dp_accounting_composes_them_one_by_one() -> None:
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(2.0), 3).compose(dp_accounting.GaussianDpEvent(3.0))
    ours = epsilon_of([Release(2.0, count=3), Release(3.0)], 1e-5, "RDP")
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 0.0), (10.0, 0.3), (20.0, 1.0)])
def test_a_plan_spends_its_budget_and_no_more(epsilon: float, share: float) -> None:
    plan = planned(epsilon, 1e-5, share, (0.25, 0.75) if share < 1.0 else (), 1.0)
    spent = epsilon_of(plan.releases(), 1e-5)
    assert 0.99 * epsilon <= spent <= epsilon
    assert (plan.statistics is None) == (share == 0.0)


def test_shares_divide_the_inverse_variances() -> None:
    plan = planned(10.0, 1e-5, 0.5, (0.2, 0.8), 1.0)
    assert plan.statistics is not None
    assert plan.rounds[0] / plan.rounds[1] == pytest.approx(2.0)
    assert 1.0 / plan.statistics**2 == pytest.approx(sum(1.0 / z**2 for z in plan.rounds))


def test_sampling_by_coins_needs_less_noise() -> None:
    rounds = (0.1,) * 10
    sampled, whole = (planned(2.0, 1e-5, 0.0, rounds, share, "RDP") for share in (0.1, 1.0))
    assert sampled.rounds[0] < 0.5 * whole.rounds[0]
    event = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(sampled.rounds[0]))
    accountant = dp_accounting.rdp.RdpAccountant().compose(event, 10)
    assert accountant.get_epsilon(1e-5) <= 2.0


def test_an_interrupted_run_has_spent_less() -> None:
    plan = ReleasePlan(2.0, (4.0, 4.0, 2.0), 1.0)
    spent = [epsilon_of(plan.releases(done), 1e-5) for done in range(4)]
    assert spent == sorted(spent)
    assert spent[0] == pytest.approx(epsilon_of([Release(2.0)], 1e-5))
    assert math.isclose(spent[-1], epsilon_of(plan.releases(), 1e-5))


def test_without_the_extra_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(UserError, match=r"fedrecplus\[privacy\]"):
        _dp_accounting()
