"""Prometheus metrics of a server: its nodes, its last run, and what all of its workers have counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fedrecplus.deploy.server.database import Database
from fedrecplus.deploy.server.figures import RunFigures, figures_of
from fedrecplus.deploy.server.lease import is_held
from fedrecplus.deploy.server.presence import worker_counters
from fedrecplus.deploy.server.roster import Roster
from fedrecplus.deploy.server.stored_run import FAILED, StoredRun

_STATES = ("online", "offline", "expelled")
_REFUSED = "refused."


def render(database: Database, certificate_days: float) -> str:
    """All metrics as text."""
    run = StoredRun.newest(database)
    states = [node["status"] for node in Roster(database).everybody()]
    nodes = {state: states.count(state) for state in _STATES}
    figures = RunFigures() if run is None else figures_of(run)
    return text_of(nodes, figures, worker_counters(database), certificate_days, coordinated=is_held(database))


def text_of(
    nodes: dict[str, int], run: RunFigures, counters: Counter[str], certificate_days: float, *, coordinated: bool
) -> str:
    """The figures in Prometheus's format."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(nodes, run, counters, certificate_days, coordinated=coordinated))
    return generate_latest(registry).decode()


class _Collector:
    def __init__(
        self, nodes: dict[str, int], run: RunFigures, counters: Counter[str], days: float, *, coordinated: bool
    ) -> None:
        self._nodes, self._run, self._counters, self._days = nodes, run, counters, days
        self._coordinated = coordinated

    def collect(self) -> Iterator[Any]:
        """What Prometheus's client asks for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        run = self._run
        refused = {
            name.removeprefix(_REFUSED): count for name, count in self._counters.items() if name.startswith(_REFUSED)
        }
        gauges: Iterable[tuple[str, str, float]] = [
            ("certificate_days", "Days until the server's certificate expires.", self._days),
            ("coordinated", "Whether a process runs rounds: 1, or 0.", self._coordinated),
            ("run_failed", "Whether the last run failed: 1, or 0.", run.phase == FAILED),
            ("round", "Rounds that the last run has closed.", run.round),
            ("cohort", "Nodes that answered in the last round.", run.cohort),
            ("round_seconds", "Seconds of the last round.", run.last_seconds),
            ("nodes_set_aside", "Nodes that the last run asks no more.", len(run.set_aside)),
        ]
        for name, text, value in gauges:
            yield GaugeMetricFamily(f"fedrecplus_{name}", text, value=value)
        if run.rmse is not None:
            yield GaugeMetricFamily("fedrecplus_loss", "Root mean squared error that nodes share.", value=run.rmse)
        counters: Iterable[tuple[str, str, float]] = [
            ("uploads", "Uploads in the last run's sums.", run.uploads),
            ("dropouts", "Asked nodes that brought nothing.", run.dropouts),
            ("scaled_updates", "Updates that were scaled down.", run.scaled),
            ("odd_items", "Items whose steps raised an alarm.", run.odd_items),
            ("upload_bytes", "Bytes of uploads.", run.bytes_up),
            ("training_seconds", "Seconds of all rounds.", run.seconds),
            ("idle_polls", "Looks for work that found none.", self._counters["idle_polls"]),
            ("answers", "Answers that were taken.", self._counters["answers"]),
            ("enrolled", "Nodes that joined by an invitation.", self._counters["enrolled"]),
            ("database_errors", "Requests that the database failed.", self._counters["database_errors"]),
        ]
        for name, text, value in counters:
            yield CounterMetricFamily(f"fedrecplus_{name}", text, value=value)
        for name, text, label, values in (
            ("refused_answers", "Answers that the last run refused.", "reason", run.refused),
            ("refused_requests", "Requests that workers refused.", "status", refused),
        ):
            family = CounterMetricFamily(f"fedrecplus_{name}", text, labels=[label])
            for reason, count in sorted(values.items()):
                family.add_metric([reason], count)
            yield family
        nodes = GaugeMetricFamily("fedrecplus_nodes", "Nodes that were admitted.", labels=["status"])
        for status, count in self._nodes.items():
            nodes.add_metric([status], count)
        yield nodes
