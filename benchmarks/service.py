"""``POST /recommend`` under load beside the bare call: fold-ins a second, p50 and p99, in one run on loopback.

A service of its own process answers ``SERVICE_REQUESTS`` requests (default: 2,000) over ``SERVICE_CONNECTIONS`` kept
connections (default: 16) from this process, which shares the machine with it. Each request has the ratings of a client
of ``SERVICE_DATA`` (default: ml-100k), at most 50. The bare call is ``Recommender.fold_in`` and ``top_list`` of the
same ratings, in this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from benchmarks.line import Line
from fedrecplus.config import assign, preset
from fedrecplus.data import Ratings, load, split
from fedrecplus.training import train
from fedrecplus.training.lists import ListOptions
from fedrecplus.training.recommender import Recommender

MOST_RATINGS = 50
BLOCKS = 8


def measure() -> list[Line]:
    requests, connections = (
        int(os.environ.get(f"SERVICE_{name}", default)) for name, default in (("REQUESTS", 2000), ("CONNECTIONS", 16))
    )
    ratings, test = split(load(os.environ.get("SERVICE_DATA", "ml-100k")), fold=0)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(ratings, test, assign(preset("fedrec+"), ["server.rounds=3"]), out=run)
        people = [people_of(ratings, number % ratings.clients) for number in range(requests)]
        bare: list[float] = []
        served: list[float] = []
        whole = computed = bare_computed = 0.0
        recommender = Recommender.load(run)
        with _service(run) as (address, process):
            asyncio.run(under_load(address, people[:200], connections))  # until it is warm
            for block in (people[start::BLOCKS] for start in range(BLOCKS)):  # in turn: others load the machine, too
                before = time.process_time()
                bare += [seconds_of(recommender, each) for each in block]
                bare_computed += time.process_time() - before
                began, before = time.perf_counter(), cpu_seconds(process)
                served += asyncio.run(under_load(address, block, connections))
                whole, computed = whole + time.perf_counter() - began, computed + cpu_seconds(process) - before
            alone = asyncio.run(under_load(address, people[:300], 1))
    rate, bare_rate = requests / whole, 1.0 / float(np.mean(bare))
    parts: dict[str, int | float] = {"requests": requests, "bare call, a second": bare_rate, "ratio": rate / bare_rate}
    parts["core time of the service, ms a list"] = 1000 * computed / requests
    parts["core time of the bare call, ms a list"] = 1000 * bare_computed / requests
    measured = {f"{connections} connections": served, "1 connection": alone, "bare call": bare}
    for name, seconds in measured.items():
        parts |= {f"{name}, p{at}, ms": 1000 * float(np.percentile(seconds, at)) for at in (50, 99)}
    return [Line("fold-ins over HTTP", rate, "a second", "200 on two cores", parts)]


def people_of(ratings: Ratings, client: int) -> dict[str, float]:
    """A client's ratings as a request has them."""
    items, values = ratings.of(client)
    chosen = zip(ratings.item_ids[items[:MOST_RATINGS]].tolist(), values[:MOST_RATINGS].tolist(), strict=True)
    return {str(item): float(rating) for item, rating in chosen}


def seconds_of(recommender: Recommender, ratings: dict[str, float]) -> float:
    """How long the bare call takes."""
    began = time.perf_counter()
    recommender.fold_in(ratings).top_list(ListOptions(10))
    return time.perf_counter() - began


async def under_load(address: str, people: Sequence[dict[str, float]], connections: int) -> list[float]:
    """Seconds of each request; every connection has one at a time."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    waiting, seconds = list(people), []

    async def one_connection() -> None:
        reader, writer = await asyncio.open_connection(host, port)
        while waiting:
            body = json.dumps({"ratings": waiting.pop(), "n": 10}).encode()
            head = f"POST /recommend HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
            began = time.perf_counter()
            writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1]
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            content = await reader.readexactly(length)
            assert status == b"200", content
            seconds.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(one_connection() for _ in range(connections)))
    return seconds


class _service:
    """``fedrecplus serve`` in a process of its own."""

    def __init__(self, run: Path) -> None:
        command = [sys.executable, "-m", "fedrecplus", "serve", str(run), "--port", "0", "--rate", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self) -> tuple[str, int]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()[0], self._process.pid

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def cpu_seconds(process: int) -> float:
    """What a process has computed so far: unlike the clock, it doesn't count what others do meanwhile."""
    user, system = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
