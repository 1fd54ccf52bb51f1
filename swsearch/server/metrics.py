"""What Prometheus is told: requests, jobs, what was scored, and the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from swsearch.server.house import House

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
"""Others are counted as one: a client may make up as many as it likes."""

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
"""Seconds."""


class Metrics:
    """The metrics of a server.

    Parameters
    ----------
    house : House
        What it serves.
    """

    def __init__(self, house: House) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # times that counters were made: as many lines
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "swsearch_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "swsearch_request_seconds", "Seconds until a request was answered, by route.", ["route"],
            buckets=BUCKETS, registry=self._registry,
        )  # fmt: skip
        self._registry.register(_HouseCollector(house))
        ProcessCollector(registry=self._registry)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all as Prometheus reads it."""
        return generate_latest(self._registry)


class _HouseCollector(Collector):
    """Asks a house for its numbers when they are read."""

    def __init__(self, house: House) -> None:
        self._house = house

    def describe(self) -> list[Any]:
        """Return nothing: names are not asked of a house that is not yet open."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the numbers of now."""
        counts = self._house.counts()
        jobs = GaugeMetricFamily("swsearch_jobs", "Jobs that are kept, by state.", labels=["state"])
        for state, number in sorted(counts.jobs.items()):
            jobs.add_metric([state], number)
        yield jobs
        yield GaugeMetricFamily("swsearch_queue_length", "Jobs that wait.", value=counts.queued)
        yield CounterMetricFamily("swsearch_cells", "Matrix cells that were scored.", value=counts.cells)
        yield CounterMetricFamily("swsearch_scoring_seconds", "Seconds in which they were.", value=counts.seconds)
        rate = counts.cells / counts.seconds / 1e9 if counts.seconds else 0.0
        yield GaugeMetricFamily("swsearch_gcups", "Billions of cells a second of scoring, since start.", value=rate)
        ready = GaugeMetricFamily(
            "swsearch_database_ready", "Whether a database can be searched.", labels=["database"]
        )
        for name, place in self._house.places.items():
            ready.add_metric([name], float(place.looked()[0] == "ready"))
        yield ready
