"""Every part of the package keeps the contract of its kind. A new file in parts/ is enrolled by being there."""

from __future__ import annotations

from fedrecplus import testing
from fedrecplus.parts import KINDS, built_in

CONTRACTS: dict[str, type[testing.Contract]] = {
    contract.kind: contract
    for contract in vars(testing).values()
    if isinstance(contract, type) and issubclass(contract, testing.Contract) and contract is not testing.Contract
}
_WITH_BUDGET = (
    "pseudo_items.rule=none", "statistics.source=secure-sum", "channel.rule=sums", "model.rule=reconstruction",
    "model.factors=2",
)  # fmt: skip
CHANGES = {
    "adam": ("server_optimizer.learning_rate=0.01",),
    "central": _WITH_BUDGET,
    "distributed": _WITH_BUDGET,
    "svdpp": ("model.learning_rate=0.2",),  # U and O answer the same errors: together they step twice as far
}
"""of a rule whose default is meant for other rounds than the example's, or that refuses some of them"""


def test_every_kind_has_a_contract() -> None:
    assert set(CONTRACTS) == set(KINDS)


for kind, contract in CONTRACTS.items():
    for rule in built_in(KINDS[kind]):
        name = f"Test_{kind}_{rule}"
        globals()[name] = type(name, (contract,), {"rule": rule, "changes": CHANGES.get(rule, ())})
