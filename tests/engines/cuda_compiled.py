"""Run in a process of its own, without TRITON_INTERPRET: compile kernels for a card that need not be there.

The interpreter takes what the compiler refuses, such as a loop variable that changes its type.
"""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from fedrecplus.engines.cuda import fused_steps

HOPPER = GPUTarget("cuda", 90, 32)
LONG, WIDE = "*i64", "*fp64"
ROWS = {
    "clients": LONG, "indptr": LONG, "items": "*i16", "codes": "*u8", "pseudo_indptr": LONG, "pseudo_items": "*i16",
    "epochs": "i32", "width": "i32", "numbers": "*i32", "weights": WIDE, "step_sizes": WIDE, "weighing": WIDE,
    "per_item": WIDE,
}  # fmt: skip
FLAGS = {"RATED_ONLY": True, "PSEUDO": True, "COLUMNS": 32}
STEPS = {**FLAGS, "ROWS": 64, "AGAIN": True, "SUM_RATED": True, "WHICH": 0}
CASES: list[tuple[Any, dict[str, str], dict[str, Any]]] = [
    (fused_steps.train_clients, ROWS, {**STEPS, "BIASES": False, "SCALED": True, "DISTANCES": True, "KEEP": False}),
    (fused_steps.train_clients, ROWS, {**STEPS, "BIASES": True, "SCALED": False, "DISTANCES": False, "KEEP": True}),
    (fused_steps.train_long, ROWS, {**FLAGS, "ROWS": 2048, "BLOCK": 128}),
]


def main() -> None:
    """Compile each case; the name of each kernel that is through."""
    for kernel, types, flags in CASES:
        names = kernel.arg_names
        signature = {name: "constexpr" if name in flags else types.get(name, "*fp32") for name in names}
        constants = {(names.index(name),): value for name, value in flags.items()}
        triton.compile(ASTSource(kernel, signature, constants), target=HOPPER)
        print(kernel.__name__, flush=True)


if __name__ == "__main__":
    main()
