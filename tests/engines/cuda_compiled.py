"""Run in a process of its own, without TRITON_INTERPRET: compile kernels for a card that need not be there.

The interpreter takes what the compiler refuses, such as a loop variable that changes its type.
"""

from __future__ import annotations

from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from fedrecplus.engines.cuda import fused_steps, summing
from fedrecplus.engines.cuda.fused import KernelSteps, KernelSums, Tables
from fedrecplus.engines.cuda.summing import KernelTarget
from fedrecplus.engines.fast.rows import KernelRows

HOPPER = GPUTarget("cuda", 90, 32)
LONG, WIDE = "*i64", "*fp64"
TYPES: dict[str, Any] = {
    "clients": LONG,
    "epochs": "i32",
    "width": "i32",
    "table": "*fp32",
    "numbers": "*i32",
    "items": "*i32",
    "moved": "*fp32",
    "weights": WIDE,
    "summed": LONG,
    "total": "*fp32",
    "per_item": WIDE,
    "starts": LONG,
    "order": LONG,
    "all_rows": KernelRows._make([LONG, "*i16", "*u8", "*fp32", LONG, "*i16", "*fp32"]),
    "tables": Tables._make(["*fp32"] * 3),
    "steps": KernelSteps._make(["*fp32"] * 2),
    "target": KernelTarget._make(["*fp32", WIDE, WIDE]),
    "sums": KernelSums._make(["*fp32", WIDE, "*i32", WIDE]),
}
FLAGS = {"RATED_ONLY": True, "PSEUDO": True, "COLUMNS": 32}
STEPS = {**FLAGS, "ROWS": 64, "SUM_RATED": True, "WHICH": 0}
CASES: list[tuple[Any, dict[str, Any]]] = [
    (fused_steps.train_clients, {**STEPS, "BIASES": False, "SCALED": True, "DISTANCES": True, "KEEP": False}),
    (fused_steps.train_clients, {**STEPS, "BIASES": True, "SCALED": False, "DISTANCES": False, "KEEP": True}),
    (fused_steps.train_long, {**FLAGS, "ROWS": 2048, "BLOCK": 128}),
    (summing.add_rows, {"ROWS": 64, "BLOCK": 32, "COLUMNS": 32, "STEPS": False}),
    (summing.add_in_order, {"ROWS": 64, "BLOCK": 16, "COLUMNS": 32, "STEPS": False}),
    (summing.weigh_clients, {"ROWS": 64, "BLOCK": 32, "COLUMNS": 32, "WHICH": 2}),
]


def main() -> None:
    """Compile each case; the name of each kernel that is through."""
    for kernel, flags in CASES:
        names = kernel.arg_names
        signature = {name: "constexpr" if name in flags else TYPES[name] for name in names}
        constants = {(names.index(name),): value for name, value in flags.items()}
        triton.compile(ASTSource(kernel, signature, constants), target=HOPPER)
        print(kernel.__name__, flush=True)


if __name__ == "__main__":
    main()
