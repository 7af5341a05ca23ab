"""Counters for Prometheus. Labels are routes and reasons of our own: nothing that a peer typed becomes one."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fedrecplus.web.service.serving import ServedModel

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class ServiceMetrics:
    """All counters of one service."""

    kind = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        into = self._registry
        self._requests = Counter(
            "fedrecplus_requests", "Answers, by route and status.", ["route", "status"], registry=into
        )
        self._seconds = Histogram(
            "fedrecplus_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=into
        )
        self._refused = Counter(
            "fedrecplus_refused", "Requests that were not looked into, by reason.", ["reason"], registry=into
        )
        self._reloads = Counter(
            "fedrecplus_reloads", "Models taken while running, and those that could not be.", ["how"], registry=into
        )
        self._model = Info("fedrecplus_model", "The model that is served.", registry=into)
        self.open = Gauge("fedrecplus_requests_in_progress", "Requests that are being answered.", registry=into)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def refused(self, reason: str) -> None:
        """Count a refusal."""
        self._refused.labels(reason).inc()

    def serves(self, model: ServedModel) -> None:
        """Say which model is served."""
        algorithm = str(model.figures.get("algorithm") or "")
        self._model.info({"number": str(model.number or ""), "digest": model.digest[:32], "algorithm": algorithm})

    def reloaded(self, how: str) -> None:
        """Count a change of model: ``done`` or ``failed``."""
        self._reloads.labels(how).inc()

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self._registry)
