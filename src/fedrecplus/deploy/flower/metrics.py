"""Prometheus metrics of a server, at `/metrics`, for who has the token of mode 600 in its home."""

from __future__ import annotations

import hmac
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from fedrecplus.deploy.flower.counters import COUNTERS
from fedrecplus.deploy.flower.respond import Unserved, check_length, respond
from fedrecplus.deploy.process import days_left, last_run
from fedrecplus.deploy.server import RunFigures, figures_of

PATH, TOKEN = "/metrics", "metrics.token"
_NODES = ("online", "offline", "registered")


class Metrics:
    """The ASGI endpoint."""

    def __init__(self, home: Path, token: str, state: Any) -> None:
        self._home, self._token, self._state = home, token, state

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if scope["method"] != "GET" or not hmac.compare_digest(given, self._token.encode()):
            raise Unserved(401, "no token")
        check_length(headers, 0)
        text = await run_in_threadpool(self._text)
        await respond(send, 200, text.encode(), b"text/plain; version=0.0.4; charset=utf-8")

    def _text(self) -> str:
        statuses = [node.status for node in self._state.get_node_info()]
        nodes = {status: statuses.count(status) for status in _NODES}
        run = last_run(self._home)
        return render(self._home, nodes, figures_of(run) if run is not None else RunFigures())


def render(home: Path, nodes: dict[str, int], run: RunFigures) -> str:
    """All metrics as text."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(home, nodes, run))
    return generate_latest(registry).decode()


class _Collector:
    def __init__(self, home: Path, nodes: dict[str, int], run: RunFigures) -> None:
        self._home, self._nodes, self._run = home, nodes, run

    def collect(self) -> Iterator[Any]:
        """What Prometheus's client asks for."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        run = self._run
        gauges: Iterable[tuple[str, str, float]] = [
            ("up_seconds", "Seconds since the server began.", time.time() - COUNTERS.began),
            ("message_bytes", "Bytes of messages in flight; no database has them.", COUNTERS.message_bytes()),
            (
                "certificate_days",
                "Days until the server's certificate expires.",
                days_left(self._home / "certificates" / "server.crt"),
            ),
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
            ("asked_again", "Nodes that came back in a round.", run.asked_again),
            ("scaled_updates", "Updates that were scaled down.", run.scaled),
            ("odd_items", "Items whose steps raised an alarm.", run.odd_items),
            ("upload_bytes", "Bytes of uploads.", run.bytes_up),
            ("training_seconds", "Seconds of all rounds.", run.seconds),
            ("idle_polls", "Looks for work that found none.", COUNTERS.idle_polls),
            ("activations", "Times that a node connected.", COUNTERS.activations),
            ("enrolled", "Nodes that joined by an invitation.", COUNTERS.enrolled),
        ]
        for name, text, value in counters:
            yield CounterMetricFamily(f"fedrecplus_{name}", text, value=value)
        for name, text, label, values in (
            ("refused_answers", "Answers that the last run refused.", "reason", run.refused),
            ("refused_requests", "Requests that the gate refused.", "reason", dict(COUNTERS.refused)),
            ("requests", "Requests by the beginning of their paths.", "path", dict(COUNTERS.requests)),
        ):
            family = CounterMetricFamily(f"fedrecplus_{name}", text, labels=[label])
            for reason, count in sorted(values.items()):
                family.add_metric([reason], count)
            yield family
        nodes = GaugeMetricFamily("fedrecplus_nodes", "Nodes that were admitted.", labels=["status"])
        for status, count in self._nodes.items():
            nodes.add_metric([status], count)
        yield nodes
