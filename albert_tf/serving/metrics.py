"""Counters of a server, in the format of Prometheus."""

import contextlib
import functools
import time
from collections.abc import Iterator

import prometheus_client

from albert_tf.serving.errors import codes_of

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


class Metrics:
    """What a server counts, by model."""

    def __init__(self) -> None:
        self._registry = registry = prometheus_client.CollectorRegistry()
        request, model = ("model", "method", "protocol"), ("model",)  # the protocol is "rest"; dashboards name it
        counter = functools.partial(prometheus_client.Counter, registry=registry)
        histogram = functools.partial(prometheus_client.Histogram, registry=registry)
        self._requests = counter("albert_tf_requests", "Answered requests.", (*request, "code"))
        self._times = histogram("albert_tf_request_seconds", "Time of a request.", request, buckets=_SECONDS)
        self.batch_rows = histogram("albert_tf_batch_rows", "Rows of a batch.", model, buckets=_ROWS)
        self.waiting_rows = prometheus_client.Gauge(
            "albert_tf_waiting_rows", "Rows that wait for a batch.", model, registry=registry
        )
        self.cut_texts = counter("albert_tf_cut_texts", "Texts of which a part was left out.", model)
        self.empty_texts = counter("albert_tf_empty_texts", "Texts without tokens.", model)

    @contextlib.contextmanager
    def measured(self, model: str, method: str) -> Iterator[None]:
        """Counts and times a request; `model` must be one that is served, since each name is kept."""
        start, code = time.perf_counter(), "OK"
        try:
            yield
        except Exception as error:
            code = codes_of(error)[1]
            raise
        finally:
            self._requests.labels(model, method, "rest", code).inc()
            self._times.labels(model, method, "rest").observe(time.perf_counter() - start)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        return prometheus_client.generate_latest(self._registry)
