"""The CUDA engine as a part of ``make bench``, where there is a card."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from benchmarks.line import Line

CLIENTS = 1_000_000


def measure() -> list[Line]:
    """Speed, growth, and hours for a billion client-rounds; where there is no card, one line that says so.

    Growth ends with 10⁷ clients and takes 16 GB and minutes to make up: where ``FEDRECPLUS_BENCH_LARGE`` is set.
    """
    if not torch_sees_a_card():
        print("cuda: there is no card here that torch can use: left out", file=sys.stderr)
        return [Line("client-rounds a second on a card", None, "million", "≥ 100", {"why": "no card"})]
    from benchmarks.cuda_speed import growth, speed  # here: torch takes seconds to load

    wanted = argparse.Namespace(clients=CLIENTS)
    return [*speed(wanted), *(growth(wanted) if os.environ.get("FEDRECPLUS_BENCH_LARGE") else [])]


def torch_sees_a_card() -> bool:
    """Whether torch is installed, with Triton, and finds a card."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "triton")):
        return False
    import torch  # here: see above

    return bool(torch.cuda.is_available())
