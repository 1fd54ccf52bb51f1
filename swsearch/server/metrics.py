"""Metrics for Prometheus: requests, jobs, scoring, and the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from swsearch.server.jobs import Jobs

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
"""Other methods count as one, since a client may invent any number of them."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
"""Seconds."""


class Metrics(Collector):
    """Counts requests, and reads the other numbers on a request of Prometheus."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a line with the start of each counter
        self._registry = CollectorRegistry()
        labels = ["method", "route", "status"]
        self._requests = Counter(
            "swsearch_requests", "Requests by route and status.", labels, registry=self._registry
        )
        self._seconds = Histogram(
            "swsearch_request_seconds", "Seconds until a request was answered, by route.", ["route"],
            buckets=BUCKETS, registry=self._registry,
        )  # fmt: skip
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)

    def describe(self) -> list[Any]:
        """Return nothing, so that registration does not call `collect` before the server runs."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the current numbers."""
        counts = self._jobs.store.counts()
        jobs = GaugeMetricFamily("swsearch_jobs", "Jobs that are kept, by state.", labels=["state"])
        for state, number in sorted(counts.items()):
            jobs.add_metric([state], number)
        yield jobs
        yield GaugeMetricFamily("swsearch_queue_length", "Jobs that wait.", value=counts.get("queued", 0))
        cells, seconds = self._jobs.scoring_totals()
        yield CounterMetricFamily("swsearch_cells", "Matrix cells that were scored.", value=cells)
        yield CounterMetricFamily("swsearch_scoring_seconds", "Seconds in which they were.", value=seconds)
        rate = cells / seconds / 1e9 if seconds else 0.0
        yield GaugeMetricFamily("swsearch_gcups", "Billions of cells a second of scoring, since start.", value=rate)
        ready = GaugeMetricFamily(
            "swsearch_database_ready", "Whether a database can be searched.", labels=["database"]
        )
        for name, database in self._jobs.databases.items():
            ready.add_metric([name], float(database.check_files()[0] == "ready"))
        yield ready
