"""Seconds and bytes of a secure sum: 1,000 clients, the whole table of ML-100K, d = 48, all masks computed.

Beside them, the limit: the bytes of mask that have to be made, at the speed of the cipher on one core; and the same
steps by the functions of Flower's SecAgg+ (``flwr.common.secure_aggregation``).
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.line import Line
from fedrecplus.parts.channel import RingLayout, encode, encoding_of
from fedrecplus.parts.channel.secure import graph, masks, shamir
from fedrecplus.parts.channel.secure.server_state import ServerOptions
from fedrecplus.parts.channel.secure.simulation import Finished, secure_sum
from fedrecplus.protocol import Upload

CLIENTS, ITEMS, COLUMNS, ROWS = 1_000, 1_682, 48, 106
DROPOUT = 0.05
FLOWER = "flwr.common.secure_aggregation"


def measure() -> list[Line]:
    """A round in 32-bit and 16-bit rings, the cipher's limit, and Flower's arithmetic for the same sizes."""
    lines = []
    for bits in (32, 16):
        before = time.process_time()
        seconds, done, plan = _round(bits)
        processor = time.process_time() - before
        layout = RingLayout(ITEMS, COLUMNS, bits)
        limit = _made_masks(plan, done) * _seconds(partial(masks.stream, bytes(32), layout.bytes_of(ITEMS)))
        parts: dict[str, float] = {
            f"{name} {who} ms": 1e3 * spent / stage.answers
            for name, stage in done.stages.items()
            for who, spent in (("client", stage.client_seconds), ("server", stage.server_seconds))
        }
        parts |= {
            "KB up per client": done.bytes_up / CLIENTS / 1e3,
            "KB down per client": done.bytes_down / CLIENTS / 1e3,
            "neighbours": plan.neighbours,
            "threshold": plan.threshold,
            "survivors": len(done.survivors),
            "processor s, all cores": processor,
            "cipher alone, one core s": limit,
        }
        lines.append(Line(f"secure sum of {CLIENTS} clients, {bits} bits", seconds, "s", "≤ 60", parts))
    return [*lines, *_beside_flower()]


def _round(bits: int) -> tuple[float, Finished, graph.GraphPlan]:
    """One sum with all masks, of random uploads; seconds include encoding."""
    layout, rng = RingLayout(ITEMS, COLUMNS, bits), np.random.default_rng(0)
    encoding = encoding_of(layout, np.full(ITEMS, CLIENTS), CLIENTS, 8.0, 64.0)
    uploads = {
        client: Upload(client, np.sort(rng.choice(ITEMS, ROWS, replace=False)), rng.uniform(-1, 1, (ROWS, COLUMNS)))
        for client in range(CLIENTS)
    }
    gone = rng.choice(CLIENTS, int(DROPOUT * CLIENTS), replace=False).tolist()
    vanish = {client: ("share", "mask", "reveal")[place % 3] for place, client in enumerate(gone)}
    options = ServerOptions(least_cohort=10)
    start = time.perf_counter()
    vectors = {client: encode(upload, encoding) for client, upload in uploads.items()}
    done = secure_sum(vectors, layout, vanish, options, seed=1)
    return time.perf_counter() - start, done, graph.plan(CLIENTS, options.corrupted, options.dropout)


def _made_masks(plan: graph.GraphPlan, done: Finished) -> int:
    """How many masks a round makes: each survivor's own, made and taken out, and one for each of its neighbours."""
    survivors = len(done.survivors)
    vanished = done.stages["share"].answers - survivors
    return survivors * (2 + plan.neighbours) + vanished * plan.neighbours


def _beside_flower() -> list[Line]:
    """One mask, one sharing and one encoding of a whole table, here and by Flower."""
    try:
        arithmetic, quantization, sharing = (
            importlib.import_module(f"{FLOWER}.{name}")
            for name in ("secaggplus_utils", "quantization", "crypto.shamir")
        )
    except ImportError:
        return []
    layout = RingLayout(ITEMS, COLUMNS, 32)
    table, secret = np.random.default_rng(0).uniform(-1, 1, (ITEMS, COLUMNS + 1)), os.urandom(32)
    encoding = encoding_of(layout, np.full(ITEMS, CLIENTS), CLIENTS, 8.0, 64.0)
    upload, plan = Upload(0, np.arange(ITEMS), table[:, :COLUMNS]), graph.plan(CLIENTS, 0.1, 0.1)
    k, t = plan.neighbours, plan.threshold
    size = layout.bytes_of(ITEMS)
    shares = shamir.split(secret, k, t, os.urandom)
    theirs = sharing.create_shares(secret, t, k)
    here: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "mask of a table": (
            lambda: masks.stream(secret, size),
            lambda: arithmetic.pseudo_rand_gen(secret, 2**32, [table.shape]),
        ),
        "encoding of a table": (
            lambda: encode(upload, encoding),
            lambda: quantization.quantize([table], 8.0, 2**22),
        ),
        f"{k} shares of a key": (
            lambda: shamir.split(secret, k, t, os.urandom),
            lambda: sharing.create_shares(secret, t, k),
        ),
        f"a key of {t} shares": (
            lambda: shamir.restore({place + 1: shares[place] for place in range(t)}),
            lambda: sharing.combine_shares(theirs[:t]),
        ),
    }
    found = []
    for name, (ours, flower) in here.items():
        seconds, other = _seconds(ours), _seconds(flower)
        found.append(
            Line(name, 1e3 * seconds, "ms", "", {"Flower ms": 1e3 * other, "Flower over this": other / seconds})
        )
    return found


def _seconds(work: Callable[[], Any], least: float = 0.3) -> float:
    """Of one call, the best of three runs."""
    best = float("inf")
    for _ in range(3):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < least / 3:
            work()
            count += 1
        best = min(best, (time.perf_counter() - start) / count)
    return best
