"""How many answers a second workers serve on one database: ``python -m benchmarks.workers --database postgresql://…``.

Devices compute nothing here: each takes a question, as a coordinator writes it, and sends a sealed answer of a cohort's
usual size. All else is as always: keys, TLS, signed requests, a long poll for the next question. Groups of devices are
asked anew as soon as everybody in them has answered, so that workers always have some. The same is measured with one
worker, two, and four, each in a database of its own: ``{workers}`` in the address stands for their number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import ssl
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import delete, func, insert, select

from benchmarks.idle import admitted, signed
from benchmarks.load import Watched, present_workers
from fedrecplus.deploy.node import trust
from fedrecplus.deploy.operate.certificates import CA
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.operate.runs import running_server
from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.schema import answers, runs, work
from fedrecplus.deploy.wire.questions import WorkItem
from fedrecplus.deploy.wire.sealing import SealingKey, seal
from fedrecplus.deploy.wire.signatures import Signer

_GROUPS = 8
_QUESTION = 2000
"""bytes of a packet without its objects"""


class Questions:
    """What a coordinator would ask, group by group."""

    def __init__(self, database: Database, devices: int) -> None:
        self.database, self.answered, self._next = database, 0, 1
        self._groups = [list(range(first, devices + 1, _GROUPS)) for first in range(1, _GROUPS + 1)]
        self._open = dict[int, tuple[int, int]]()
        """group → its questions, from a number up to another"""
        self._key = SealingKey().public
        facts = {"model": "none", "config": "", "deployment": "", "data": "", "catalogue": b"", "phase": "finished"}
        with database.changing() as connection:
            inserted = connection.execute(
                insert(runs).values(**facts, stop=False, progress="", begun_at=time.time())
            ).inserted_primary_key
        assert inserted is not None
        self._run = int(inserted[0])

    def ask_who_waits(self) -> None:
        """A new question for everybody in each group whose last ones are all answered."""
        for group in range(_GROUPS):
            if group not in self._open or self._is_answered(*self._open[group]):
                self._ask(group)

    def _is_answered(self, first: int, end: int) -> bool:
        mine = (answers.c.work >= first) & (answers.c.work < end)
        with self.database.reading() as connection:
            count = int(connection.execute(select(func.count()).select_from(answers).where(mine)).scalar() or 0)
        if count == end - first:
            self.answered += count
        return count == end - first

    def _ask(self, group: int) -> None:
        first, until, rows = self._next, time.time() + 600.0, list[dict[str, Any]]()
        for number, node in enumerate(self._groups[group], first):
            question = WorkItem(number, node, until, self._key, bytes(_QUESTION), {})
            facts = {"id": number, "run": self._run, "node": node, "round": 1, "stage": "upload", "until": until}
            rows.append({**facts, "attempt": str(first), "question": msgspec.msgpack.encode(question)})
        with self.database.changing() as connection:
            if group in self._open:
                earlier = (work.c.id >= self._open[group][0]) & (work.c.id < self._open[group][1])
                connection.execute(delete(answers).where(answers.c.work.in_(select(work.c.id).where(earlier))))
                connection.execute(delete(work).where(earlier))
            connection.execute(insert(work), rows)
        self._next += len(rows)
        self._open[group] = (first, self._next)


def _answering(port: int, ca: Path, keys: list[bytes], size: int) -> None:
    """Some devices in a process of theirs, until it is ended."""
    signers = [Signer(Ed25519PrivateKey.from_private_bytes(key)) for key in keys]

    async def everybody() -> None:
        tls = trust(ca)
        await asyncio.gather(*(_device(port, tls, signer, size) for signer in signers))

    uvloop.run(everybody())


async def _device(port: int, tls: ssl.SSLContext, signer: Signer, size: int) -> None:
    """Take a question, answer it, for ever; a connection that ends is opened anew."""
    after = 0
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
            while True:
                content = await _call(reader, writer, signer, "GET", f"/v1/work?wait=50&after={after}")
                if content:
                    question = msgspec.msgpack.decode(content, type=WorkItem)
                    sealed = seal(bytes(size), question.seal, question.context)
                    await _call(reader, writer, signer, "POST", f"/v1/work/{question.id}", sealed)
                    after = question.id
        except (OSError, asyncio.IncompleteReadError, ssl.SSLError):
            await asyncio.sleep(1.0)


async def _call(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, signer: Signer, method: str, target: str,
    body: bytes = b"",
) -> bytes:  # fmt: skip
    writer.write(signed(signer, method, target, body))
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = head.partition("content-length:")[2].partition("\r")[0]
    return await reader.readexactly(int(length or 0))


def _measured(server: ServerHome, wanted: argparse.Namespace, count: int) -> dict[str, Any]:
    """Answers a second over a window, after everybody has answered once."""
    keys = [key.private_bytes_raw() for key in admitted(server, wanted.devices)]
    serving = Watched("operate.serving work")
    start = multiprocessing.get_context("spawn")
    crowds = [
        start.Process(
            target=_answering,
            args=(server.port, server.certificates / CA, keys[number :: wanted.processes], wanted.bytes),
            daemon=True,
        )
        for number in range(wanted.processes)
    ]
    while present_workers(server) < count:
        time.sleep(0.2)
    for crowd in crowds:
        crowd.start()
    questions = Questions(server.database, wanted.devices)
    while questions.answered < 2 * wanted.devices:
        questions.ask_who_waits()
        time.sleep(0.02)
    serving.start()
    before, began = questions.answered, time.monotonic()
    while time.monotonic() - began < wanted.seconds:
        questions.ask_who_waits()
        time.sleep(0.02)
    seconds, answered = time.monotonic() - began, questions.answered - before
    serving.look()
    for crowd in crowds:
        crowd.terminate()
    return {
        "answers a second": round(answered / seconds, 1),
        "ms of workers' processors an answer": round(1000 * serving.cpu / max(answered, 1), 2),
        "processors of workers": round(serving.cpu / seconds, 2),
        "load average": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Run it with each number of workers, and print the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=6, help="that devices are in")
    parser.add_argument("--bytes", type=int, default=20_000, help="of an answer")
    parser.add_argument("--seconds", type=float, default=30.0, help="that are measured")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4], help="of workers")
    parser.add_argument("--database", default="")
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for count in wanted.counts:
        address = wanted.database.replace("{workers}", str(count))
        with (
            tempfile.TemporaryDirectory(prefix="workers") as folder,
            running_server(Path(folder) / "server", count, address) as server,
        ):
            found[str(count)] = _measured(server, wanted, count)
    first = found[str(wanted.counts[0])]["answers a second"]
    for one in found.values():
        one["times the first"] = round(one["answers a second"] / first, 2)
    report = {"cores": os.cpu_count(), "devices": wanted.devices, "bytes": wanted.bytes, "workers": found}
    print(json.dumps(report, indent=1))
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
