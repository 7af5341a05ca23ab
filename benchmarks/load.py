"""Many nodes against one real server on this machine: ``python -m benchmarks.load --nodes 200 --cohort 50``.

TLS and keys are on. Measured are a round's time, the server's processor time and memory, and calls by kind; and that
nothing is lost: rounds follow each other, every store is sound and has its ratings, and each upload that the journal
counts is in the log of the node that sent it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from fedrecplus.config import Config, change, preset
from fedrecplus.data import load
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.node import NodeHome, read_public_key
from fedrecplus.deploy.operate.certificates import CA
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.runs import deal_out, run_to_the_end, running_server
from fedrecplus.deploy.server import Deployment, begin, journal_of
from fedrecplus.deploy.server.schema import workers as said_workers
from fedrecplus.deploy.wire import ItemCatalogue

TICK = os.sysconf("SC_CLK_TCK")
STAGES = 4
"""of a secure sum: keys, shares, masked vectors, what unmasks them"""


@dataclass
class Watched:
    """Processor time and memory of the processes below this one whose command line names a module."""

    module: str
    cpu: float = 0.0
    """since ``start``"""
    peak: int = 0
    before: float = 0.0
    _by_pid: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Read the kernel's figures."""
        memory = 0
        for pid, command in descendants(os.getpid()):
            if self.module in command:
                try:
                    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                    self._by_pid[pid] = (int(fields[11]) + int(fields[12])) / TICK
                    memory += 4096 * int(fields[21])
                except OSError:
                    continue
        self.cpu, self.peak = sum(self._by_pid.values()) - self.before, max(self.peak, memory)

    def start(self) -> None:
        """Count from here: what programs took to load is no part of a round."""
        self.look()
        self.before += self.cpu


def descendants(root: int) -> list[tuple[int, str]]:
    """Processes that this one started, with theirs."""
    parents: dict[int, list[int]] = {}
    commands: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(folder.name))
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        left += children
        found += [(pid, commands[pid]) for pid in children]
    return found


def settings(nodes: int, cohort: int, rounds: int, channel: str) -> Config:
    """What is trained: our preset in the clear, or one whose updates are summed securely."""
    config = preset("fedrec+private" if channel == "clear" else "fedmf")
    changes: dict[str, Any] = {
        "server.rounds": rounds,
        "cohort.fraction": min(1.0, cohort / nodes),
        "model.factors": 16,
    }
    if channel == "secure":
        changes |= {
            "channel.rule": "secure",
            "channel.cryptography": "computed",
            "channel.least_cohort": max(3, cohort // 2),
        }
        changes["channel.demonstration"] = True  # made-up people
    for name, value in changes.items():
        config = change(config, name, value)
    return config


def start_crowds(server: ServerHome, homes: list[NodeHome], folder: Path, given: argparse.Namespace) -> list[Any]:
    """The nodes, in a few processes."""
    crowds = []
    messages = STAGES if given.channel == "secure" else 1  # of a round; shares and counts are meant by the round
    dropouts = 1.0 - (1.0 - given.dropouts) ** (1.0 / messages)
    kills = given.kills / (given.rounds * given.cohort * messages)
    for number in range(given.processes):
        (folder / f"homes{number}").write_text("\n".join(str(home.path) for home in homes[number :: given.processes]))
        command = [
            sys.executable, "-m", "benchmarks.crowd", f"127.0.0.1:{server.port}", "--ca", str(server.certificates / CA),
            "--homes", str(folder / f"homes{number}"), "--out", str(folder / f"crowd{number}.json"),
            "--dropouts", str(dropouts), "--kills", str(kills),
            "--away", str(given.away), "--poll", str(given.poll),
        ]  # fmt: skip
        with (folder / f"crowd{number}.log").open("wb") as log:
            crowds.append(subprocess.Popen(command, stdout=log, stderr=log))
    return crowds


def whole(lines: list[dict[str, Any]], homes: list[NodeHome], ratings: int) -> dict[str, Any]:
    """What must hold in the end."""
    assert [line["round"] for line in lines] == list(range(1, len(lines) + 1)), "a round is missing or there twice"
    sent: Counter[tuple[int, int]] = Counter()
    stored = 0
    for home in homes:
        with Store.open(home.store) as store:
            assert store.value("PRAGMA integrity_check") == "ok", home
            stored += int(store.value("SELECT COUNT(*) FROM ratings"))
            model = (store.models() or [{"model": ""}])[0]["model"]
            number = store.wire_number(model, 0) if model else 0
            sent.update({(number, line["round"]): 1 for line in store.sent() if line["stage"] == "upload"})
    assert stored == ratings, "a rating is lost"
    counted = [(client, line["round"] - 1) for line in lines for client in line["clients"]]
    assert len(set(counted)) == len(counted), "a person counts twice in a round"
    assert all(one in sent for one in counted), "an upload that no node has sent"
    return {"rounds": len(lines), "uploads": len(counted), "ratings": stored}


def options(program: str, **defaults: Any) -> argparse.ArgumentParser:
    """What a run is told, with other defaults for some of it."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--cohort", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--dropouts", type=float, default=0.1)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--channel", choices=("clear", "secure"), default="clear")
    parser.add_argument("--quorum", type=float, default=0.85)
    parser.add_argument("--deadline", type=float, default=120.0)
    parser.add_argument("--away", type=float, default=60.0, help="seconds that a dropout is away")
    parser.add_argument("--poll", type=float, default=30.0)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--database", default="")
    parser.add_argument("--json", type=Path)
    parser.set_defaults(**defaults)
    return parser


def main() -> None:
    """Prepare, run, measure."""
    given = options("python -m benchmarks.load").parse_args()
    with tempfile.TemporaryDirectory(prefix="load") as name:
        facts = measured(Path(name), given)
    print(json.dumps(facts, indent=1))
    if given.json is not None:
        given.json.write_text(json.dumps(facts, indent=1) + "\n")


def present_workers(server: ServerHome) -> int:
    """How many have said that they are there."""
    with server.database.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(said_workers)).scalar() or 0)


def measured(folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """One run in a folder, from ratings to figures."""
    ratings = load(f"synthetic:clients={given.nodes},items={given.items},ratings_per_client=30")
    config = settings(given.nodes, given.cohort, given.rounds, given.channel)
    # who is away isn't waited for: where rounds are quick, a minute's dropouts are a third of everybody
    present = max(1, given.nodes // 2)
    deployment = Deployment(present, given.quorum, given.deadline, patience=1200.0)
    homes = deal_out(ratings, folder / "nodes", given.nodes, None)
    workers, coordinator = Watched("operate.serving work"), Watched("operate.serving coordinate")
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            workers.look()
            coordinator.look()

    with running_server(folder / "server", given.workers, given.database) as server:
        for home in homes:
            server.roster.admit(read_public_key(home.make_key()))
        items, data = ItemCatalogue.of(ratings), {"dataset": ratings.name}
        run = begin(server.database, folder / "run", config, deployment, items, data)
        while present_workers(server) < given.workers:
            time.sleep(0.2)
        workers.start()
        coordinator.start()
        began = time.monotonic()
        threading.Thread(target=watch, daemon=True).start()
        crowds = start_crowds(server, homes, folder, given)
        try:
            run_to_the_end(run, folder / "run", Shown(), print)
        finally:
            seconds = time.monotonic() - began
            over.set()
            for crowd in crowds:
                crowd.send_signal(signal.SIGTERM)
            for crowd in crowds:
                crowd.wait(60)
    lines = journal_of(folder / "run")
    said = [json.loads((folder / f"crowd{number}.json").read_text()) for number in range(given.processes)]
    rounds = [line["seconds"] for line in lines]
    calls = sum((Counter(one["count"]) for one in said), Counter[str]())
    spent = sum((Counter(one["seconds"]) for one in said), Counter[str]())
    return {
        "channel": given.channel, "nodes": given.nodes, "cohort": given.cohort,
        "whole": whole(lines, homes, len(ratings)),
        "seconds": round(seconds, 1), "round median": round(statistics.median(rounds), 2),
        "round slowest": round(max(rounds), 2), "round by round": [round(one, 2) for one in rounds],
        "answers": [len(line["nodes"]) for line in lines], "silent": sum(len(line["silent"]) for line in lines),
        "lost": dict(Counter(why for line in lines for why in line["lost"].values())),
        "refused": lines[-1]["refusals"]["refused"],
        "workers' cpu": round(workers.cpu, 1), "workers' MB": workers.peak // 10**6,
        "coordinator's cpu": round(coordinator.cpu, 1), "coordinator's MB": coordinator.peak // 10**6,
        "nodes' cpu": round(sum(one["cpu"] for one in said), 1),
        "nodes' MB": [one["memory"] // 10**6 for one in said],
        "events": {name: calls[name] for name in ("answered", "refused", "kill", "dropout", "fault")},
        "calls": {name: count for name, count in calls.items() if " " in name},
        "ms a call": {name: round(1000 * spent[name] / calls[name], 1) for name in calls if " " in name},
        "load average": os.getloadavg(),
    }  # fmt: skip


class Shown:
    """A line now and then, for whoever waits."""

    def __init__(self) -> None:
        self._last: tuple[Any, ...] = ()

    def __call__(self, progress: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        """Print where a run is, where that is news."""
        phase = progress.get("phase")
        news = (len(lines), phase, progress.get("stage"), progress.get("nodes") if phase == "waiting" else None)
        if news != self._last:
            words = " ".join(str(one) for one in news[1:] if one is not None)
            print(time.strftime("%H:%M:%S"), "round", len(lines), words, flush=True)
        self._last = news


if __name__ == "__main__":
    main()
