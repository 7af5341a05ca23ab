"""The driver's side: shards on workers, answers in the order of the shards, and new workers for those that died."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedrecplus.engines.ray.connection import (
    ADDRESS,
    NAMESPACE,
    connect,
    machines,
    shards_in_memory,
    share_of_cards,
    threads_of_worker,
    worker_count,
)
from fedrecplus.engines.ray.worker import Setup, ShardOutcome, Worker
from fedrecplus.errors import UserError

MOST_DEATHS = 3
"""of workers over one shard in one call, before it is the shard's fault"""
STATUS = "status"
Submit = Callable[[Any, int, bool], Sequence[Any]]
"""worker, shard, whether its state is lost → references: the outcome's, then those of arrays"""


@dataclass(frozen=True)
class _Call:
    shard: int
    worker: int
    actor: Any
    refs: Sequence[Any]


@dataclass
class Deaths:
    """What went wrong and was put right."""

    workers: list[str] = field(default_factory=list)
    """names of workers that died"""
    repeated: list[int] = field(default_factory=list)
    """shards whose call was repeated"""
    solved: list[int] = field(default_factory=list)
    """shards whose private state was lost with a machine and solved for again"""


class Cluster:
    """Workers for the shards of one problem. Which worker has which shard changes no figure."""

    def __init__(self, setup: Callable[[Any], Setup]) -> None:
        self.ray = connect()
        made = setup(self.ray)
        self.shards = len(made.shards)
        self.setup = (self.ray.put(made),)
        self.workers = worker_count(self.ray, self.shards)
        self.deaths = Deaths()
        self._name, self._started = f"{NAMESPACE}-{uuid.uuid4().hex[:6]}", 0
        self._threads, self._room = threads_of_worker(self.ray, self.workers), shards_in_memory()
        limits: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        if made.config.engine == "cuda":
            limits["num_gpus"] = share_of_cards(self.ray, self.workers)
        self._kind = self.ray.remote(concurrency_groups={STATUS: 1}, **limits)(Worker)
        self._actors = [self._start(number) for number in range(self.workers)]

    def _start(self, number: int) -> Any:
        self._started += 1
        name = f"{self._name}-worker-{number}" + (f"-{self._started}" if self._started > self.workers else "")
        options = self._kind.options(name=name, namespace=NAMESPACE)
        return options.remote(f"worker {number}", self._threads, self._room)

    def gather(self, submit: Submit) -> Iterator[tuple[int, ShardOutcome, Sequence[Any]]]:
        """Every shard's outcome, in the order of shards, whoever worked on it and however often."""
        waiting: dict[Any, _Call] = {}
        arrived: dict[int, tuple[ShardOutcome, Sequence[Any]]] = {}
        tries = dict.fromkeys(range(self.shards), 0)
        for shard in range(self.shards):
            self._submit(submit, shard, waiting)
        for shard in range(self.shards):
            while shard not in arrived:
                for ref in self.ray.wait(list(waiting), num_returns=1)[0]:
                    self._take(submit, waiting.pop(ref), waiting, arrived, tries)
            yield shard, *arrived.pop(shard)

    def _submit(self, submit: Submit, shard: int, waiting: dict[Any, _Call], lost: bool = False) -> None:
        number = shard % self.workers
        actor = self._actors[number]
        refs = submit(actor, shard, lost)
        waiting[refs[0]] = _Call(shard, number, actor, refs)

    def _take(
        self,
        submit: Submit,
        call: _Call,
        waiting: dict[Any, _Call],
        arrived: dict[int, tuple[ShardOutcome, Sequence[Any]]],
        tries: dict[int, int],
    ) -> None:
        """An answer, or the same call again with a new worker."""
        errors = self.ray.exceptions
        try:
            arrived[call.shard] = (self.ray.get(call.refs[0]), call.refs[1:])
            return
        except errors.RayTaskError as error:
            if isinstance(error.cause, UserError):
                raise error.cause from None
            if not isinstance(error.cause, errors.ObjectLostError):
                raise
            self.deaths.solved.append(call.shard)
            lost = True
        except (errors.RayActorError, errors.WorkerCrashedError, errors.ObjectLostError):
            lost = False
        tries[call.shard] += 1
        if tries[call.shard] > MOST_DEATHS:
            raise UserError(
                f"{tries[call.shard]} workers died over shard {call.shard}",
                "perhaps memory ran out: write more and smaller shards, or set FEDRECPLUS_SHARDS_IN_MEMORY=1",
            )
        if not lost and self._actors[call.worker] is call.actor:
            self.deaths.workers.append(f"worker {call.worker}")
            self._actors[call.worker] = self._start(call.worker)
        self.deaths.repeated.append(call.shard)
        self._submit(submit, call.shard, waiting, lost)

    def statuses(self) -> list[dict[str, Any]]:
        """What the workers say of themselves."""
        return statuses_of(self.ray, self._actors)


def statuses_of(ray: Any, actors: Sequence[Any], patience: float = 10.0) -> list[dict[str, Any]]:
    """What workers say of themselves; one that doesn't answer is left out."""
    refs = [actor.status.options(concurrency_group=STATUS).remote() for actor in actors]
    ready, _ = ray.wait(refs, num_returns=len(refs), timeout=patience) if refs else ([], [])
    answers = []
    for ref in ready:
        try:
            answers.append(ray.get(ref))
        except ray.exceptions.RayActorError:
            continue
    return answers


def slow_workers(seconds: Mapping[str, float], times: float = 1.5) -> list[str]:
    """Workers that took much longer than the middle one.

    >>> slow_workers({"worker 0": 1.0, "worker 1": 1.1, "worker 2": 2.0})
    ['worker 2']
    """
    if len(seconds) < 2:
        return []
    middle = sorted(seconds.values())[(len(seconds) - 1) // 2]
    return [name for name, taken in seconds.items() if taken > times * middle]


def cluster_overview(address: str | None) -> dict[str, Any]:
    """Machines and workers of the cluster at an address; of the one on this machine if none is given."""
    ray = connect(address or os.environ.get(ADDRESS) or "auto")
    named = ray.util.list_named_actors(all_namespaces=True)
    names = sorted(one["name"] for one in named if one["namespace"] == NAMESPACE)
    actors = []
    for name in names:
        try:
            actors.append(ray.get_actor(name, namespace=NAMESPACE))
        except ValueError:  # it ended meanwhile
            continue
    workers = statuses_of(ray, actors)
    slow = slow_workers({f"{one['machine']} {one['pid']}": one["seconds"] for one in workers})
    for one in workers:
        one["slow"] = f"{one['machine']} {one['pid']}" in slow
    return {"machines": [_machine(node) for node in machines(ray)], "workers": workers}


def _machine(node: dict[str, Any]) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "address": node["NodeManagerAddress"],
        "cores": int(resources.get("CPU", 0)),
        "cards": int(resources.get("GPU", 0)),
        "memory GB": resources.get("memory", 0) / 1e9,
        "object store GB": resources.get("object_store_memory", 0) / 1e9,
    }
