"""Clock time to an error with slow devices: rounds that close at their target, beside a buffer of answers (FedBuff).

An event model over the real engine. Every device takes its own time to answer, with a heavy tail, and some never do.
Synchronous rounds ask as many more as are lost and close at a share of their target; late answers are let go. Buffered
training (Nguyen et al. 2022) keeps as many devices at work all the time: the server steps whenever so many answers are
in, each with weight 1/√(1 + s) where s steps were taken since its device was asked. Errors are on a validation cut.

    python -m benchmarks.buffered [--preset fedmf] [--hours 1.5] [--seed 0]
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrecplus import data
from fedrecplus.config import Config, assign, preset
from fedrecplus.engines import Engine, Problem, SimulationState, engine_of, prepare
from fedrecplus.engines.state import PrivateState, message_of
from fedrecplus.experiments.validation import Cut, tuning_cut
from fedrecplus.protocol import Broadcast, Sums
from fedrecplus.rounds import server_round
from fedrecplus.training.evaluation import Fallback, predictor_of, score

MEDIAN, LOST = 30.0, 0.1
"""seconds of an answer: log-normal over devices, and over each device's answers; the share that never comes"""
DEADLINE, LEASE = 120.0, 600.0
"""seconds after which a synchronous round closes (the deployment's default), and a buffered one gives up an answer"""


@dataclass(frozen=True)
class Way:
    """One way to run rounds."""

    at_work: int
    """devices that are asked at a time"""
    enough: int
    """answers that make a step"""
    buffered: bool
    rate: float
    """the server's learning rate"""
    momentum: float = 0.75

    def __str__(self) -> str:
        kind = "buffer" if self.buffered else "rounds"
        return f"{kind}: {self.at_work} at work, step at {self.enough}, η {self.rate:g}, β {self.momentum:g}"


class Devices:
    """How long answers take, and which never come; the same for every way with the same seed."""

    def __init__(self, count: int, spread: float, seed: int) -> None:
        self._draws, self._spread = np.random.default_rng(seed), spread
        self._slowness = np.exp(spread * self._draws.standard_normal(count))

    def seconds(self, client: int) -> float:
        """Of the next answer; infinite where it is lost."""
        if self._draws.random() < LOST:
            return math.inf
        return float(MEDIAN * self._slowness[client] * np.exp(self._spread * self._draws.standard_normal()))

    def choose(self, among: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """A sample."""
        return np.sort(self._draws.choice(among, min(count, len(among)), replace=False))


def rounds_of(problem: Problem, engine: Engine, way: Way, devices: Devices) -> Iterator[tuple[float, SimulationState]]:
    """Clock and state after each synchronous round, which closes at ``enough`` answers or its deadline."""
    state, clock = engine.start(problem), 0.0
    while True:
        asked = devices.choose(problem.able, way.at_work)
        took = np.array([devices.seconds(client) for client in asked.tolist()])
        seconds = min(float(np.sort(took)[min(way.enough, len(took)) - 1]), DEADLINE)
        clock, clients = clock + seconds, asked[took <= seconds]
        sums, private, _ = engine.sums(problem, state.private, message_of(problem, state, clients), clients)
        state = SimulationState(server_round(state.server, sums, problem.public, problem.config), private)
        yield clock, state


def buffer_of(problem: Problem, engine: Engine, way: Way, devices: Devices) -> Iterator[tuple[float, SimulationState]]:
    """Clock and state after each step of buffered training. After: Nguyen et al. 2022, Algorithm 1"""
    state, order = engine.start(problem), itertools.count()
    told = {0: message_of(problem, state, problem.able)}
    waiting: list[tuple[float, int, int, int, bool]] = []
    """when, order, client, version that it was told, whether an answer comes"""
    idle = set(problem.able.tolist())

    def ask(clock: float, count: int) -> None:
        for client in devices.choose(np.array(sorted(idle)), count).tolist():
            idle.discard(client)
            seconds = devices.seconds(client)
            when = clock + min(seconds, LEASE)
            heapq.heappush(waiting, (when, next(order), client, state.server.round, seconds < LEASE))

    ask(0.0, way.at_work)
    buffer: list[tuple[int, int]] = []
    while True:
        clock, _, client, version, comes = heapq.heappop(waiting)
        idle.add(client)
        if comes:
            buffer.append((client, version))
        if len(buffer) == way.enough:
            sums, private = _sums(problem, engine, state, told, buffer)
            state = SimulationState(server_round(state.server, sums, problem.public, problem.config), private)
            buffer = []
            told[state.server.round] = message_of(problem, state, problem.able)
            for old in told.keys() - {each[3] for each in waiting} - {state.server.round}:
                del told[old]
            yield clock, state
        ask(clock, 1)


def _sums(
    problem: Problem, engine: Engine, state: SimulationState, told: dict[int, Broadcast], buffer: list[tuple[int, int]]
) -> tuple[Sums, PrivateState]:
    """The buffer's sums: uploads of one version together, weighted by its staleness."""
    private, parts = state.private, []
    for version in sorted({version for _, version in buffer}):
        clients = np.array(sorted({client for client, one in buffer if one == version}))
        sums, private, _ = engine.sums(problem, private, told[version], clients)
        weight = 1.0 / math.sqrt(1.0 + state.server.round - version)
        parts.append(
            replace(sums, total=weight * sums.total, weights=weight * sums.weights, overall=weight * sums.overall)
        )
    total, weights = np.sum([part.total for part in parts], axis=0), np.sum([part.weights for part in parts], axis=0)
    overall, clients_in = sum(part.overall for part in parts), sum(part.clients for part in parts)
    return replace(parts[0], total=total, weights=weights, overall=overall, clients=clients_in), private


def curve(
    where: Cut, config: Config, way: Way, hours: float, spread: float, seed: int, looks: int = 60
) -> list[tuple[float, float]]:
    """Seconds on the clock and RMSE, some ``looks`` times on the way."""
    prior, options = list[str](), config.model.settings
    if hasattr(options, "item_prior"):  # of a small step it is for so many of all persons, as the ratings in it are
        prior = [f"model.item_prior={options.item_prior * min(1.0, way.enough / where.fitted.clients)}"]
    config = assign(
        config,
        [
            "server_optimizer.rule=momentum", f"server_optimizer.learning_rate={way.rate}",
            f"server_optimizer.momentum={way.momentum}",
            "server.cooldown=0", "server.rounds=1000000", *prior,
        ],
    )  # fmt: skip
    problem, engine = prepare(where.fitted, config), engine_of(config)
    fallback, found, due = Fallback.of(where.fitted, config), list[tuple[float, float]](), 0.0
    run = buffer_of if way.buffered else rounds_of
    for clock, state in run(problem, engine, way, Devices(where.fitted.clients, spread, seed)):
        if clock >= due:
            predictor = predictor_of(engine, problem, state)
            found.append((clock, score(where.held_out, predictor.predict, fallback).rmse))
            due = clock + 3600.0 * hours / looks
        if clock > 3600.0 * hours:
            return found
    return found


def reached(found: list[tuple[float, float]], error: float) -> float:
    """Minutes until the error was that low; infinite where it never was."""
    return next((clock / 60.0 for clock, rmse in found if rmse <= error), math.inf)


def ways(rates: list[float], momenta: list[float]) -> Iterator[Way]:
    """What is compared: 222 devices at work, or all of them."""
    for at_work, sync, buffers in ((222, (200, 160, 100), (100, 50, 20)), (943, (849, 660, 471), (471, 200, 94))):
        for rate, momentum in itertools.product(rates, momenta):
            for enough in sync:
                yield Way(at_work, enough, False, rate, momentum)
            for enough in buffers:
                yield Way(at_work, enough, True, rate, momentum)


def main() -> None:
    """Print a table and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.buffered", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="fedmf")
    parser.add_argument("--hours", type=float, default=2.0, help="on the model's clock")
    parser.add_argument("--spread", type=float, default=1.0, help="σ of log seconds over devices, and over answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.03, 0.1, 0.3, 1.0])
    parser.add_argument("--momenta", type=float, nargs="+", default=[0.0, 0.75])
    parser.add_argument("--at", type=float, nargs="+", default=[0.92, 0.91, 0.90, 0.895])
    parser.add_argument("--json", type=Path, default=Path("runs/buffered.json"))
    wanted = parser.parse_args()
    where, config, lines = tuning_cut(data.load("ml-100k")), preset(wanted.preset), []
    for way in ways(wanted.rates, wanted.momenta):
        began = time.perf_counter()
        found = curve(where, config, way, wanted.hours, wanted.spread, wanted.seed)
        minutes = [reached(found, error) for error in wanted.at]
        best = min(rmse for _, rmse in found)
        lines.append({"way": str(way), "minutes": minutes, "best": best, "last": found[-1][1], "curve": found})
        text = " | ".join("–" if math.isinf(value) else f"{value:.1f}" for value in minutes)
        took = time.perf_counter() - began
        print(f"| {way} | {text} | {best:.4f} | {found[-1][1]:.4f} | {took:.0f} s", flush=True)
    wanted.json.parent.mkdir(parents=True, exist_ok=True)
    wanted.json.write_text(json.dumps({"preset": wanted.preset, "at": wanted.at, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
