"""Every part of the package keeps the contract of its kind. A new file in parts/ is enrolled by being there."""

from __future__ import annotations

from fedrecplus import testing
from fedrecplus.parts import KINDS, built_in

CONTRACTS: dict[str, type[testing.Contract]] = {
    contract.kind: contract
    for contract in vars(testing).values()
    if isinstance(contract, type) and issubclass(contract, testing.Contract) and contract is not testing.Contract
}
SMALLER_STEPS = {"adam": ("server_optimizer.learning_rate=0.01",)}
"""of a rule whose default is meant for other rounds than the example's"""


def test_every_kind_has_a_contract() -> None:
    assert set(CONTRACTS) == set(KINDS)


for kind, contract in CONTRACTS.items():
    for rule in built_in(KINDS[kind]):
        name = f"Test_{kind}_{rule}"
        globals()[name] = type(name, (contract,), {"rule": rule, "changes": SMALLER_STEPS.get(rule, ())})
