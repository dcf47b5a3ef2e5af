"""Counters of a server, in the format of Prometheus."""

import contextlib
import time
from collections.abc import Callable, Iterator

import prometheus_client

from albert_tf.data.finetuning.text_counts import TextCounts
from albert_tf.serving.errors import codes_of

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST


class Metrics:
    """Requests, their times, sizes of batches, the rows that wait, and texts that were cut or empty, by model."""

    def __init__(self) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        request = ("model", "method", "protocol")  # which is "rest"; dashboards name it
        self._requests = prometheus_client.Counter(
            "albert_tf_requests", "Answered requests.", (*request, "code"), registry=self._registry
        )
        self._times = prometheus_client.Histogram(
            "albert_tf_request_seconds", "Time of a request.", request, registry=self._registry, buckets=_SECONDS
        )
        self._batches = prometheus_client.Histogram(
            "albert_tf_batch_rows", "Rows of a batch.", ("model",), registry=self._registry, buckets=_ROWS
        )
        self._waiting = prometheus_client.Gauge(
            "albert_tf_waiting_rows", "Rows that wait for a batch.", ("model",), registry=self._registry
        )
        self._cut = prometheus_client.Counter(
            "albert_tf_cut_texts", "Texts of which a part was left out.", ("model",), registry=self._registry
        )
        self._empty = prometheus_client.Counter(
            "albert_tf_empty_texts", "Texts without tokens.", ("model",), registry=self._registry
        )

    @contextlib.contextmanager
    def measured(self, model: str, method: str) -> Iterator[None]:
        """Counts and times a request; `model` must be one that is served, since each name is kept."""
        start, code = time.perf_counter(), "OK"
        try:
            yield
        except Exception as error:
            code = codes_of(error)[1]
            raise
        except BaseException:
            code = "CANCELLED"
            raise
        finally:
            self._requests.labels(model, method, "rest", code).inc()
            self._times.labels(model, method, "rest").observe(time.perf_counter() - start)

    def observe_batch(self, model: str, rows: int) -> None:
        """Counts a batch."""
        self._batches.labels(model).observe(rows)

    def observe_texts(self, model: str, counts: TextCounts) -> None:
        """Counts the texts of a batch that were cut or empty."""
        self._cut.labels(model).inc(counts.cut)
        self._empty.labels(model).inc(counts.empty)

    def watch_queue(self, model: str, waiting: Callable[[], int]) -> None:
        """Reports the number of waiting rows of a model whenever it is asked for."""
        self._waiting.labels(model).set_function(waiting)

    def text(self) -> bytes:
        """All metrics, in the text format of Prometheus."""
        return prometheus_client.generate_latest(self._registry)
