"""Merges the rows of concurrent requests into batches of similar length.

A batch has rows that arrived while the one before was computed. They have equal shapes, apart from the batch, and
strings of similar length, so that little of it is padding.
"""

import asyncio
import concurrent.futures
import dataclasses
import gc
import heapq
import logging
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from albert_tf.data.finetuning.encoded import BYTES_PER_TOKEN
from albert_tf.data.finetuning.text_counts import count_texts
from albert_tf.serving.engine import Engine
from albert_tf.serving.errors import QueueFullError
from albert_tf.serving.metrics import Metrics
from albert_tf.serving.options import ServerOptions

# Texts share a batch if their lengths differ by so many tokens at most, or by a quarter of the first's.
MAX_DIFFERENCE = 32
# Longer texts are mostly cut, or read in windows.
LONG = 512
# Tokens of a row of a model that computes all of them: in windows, or for each choice. The memory of one pass is in
# proportion, some 2 GB for ALBERT-base. Other models truncate their texts.
MAX_ROW_TOKENS = 1 << 14
_OF_ALL_TOKENS = {"answer", "entity_label", "choice"}  # outputs of such models, also of exports of other programs
_PADDING = {"O": b"", "i": -1, "f": 0}  # by kind of dtype, as the signatures pad
_logger = logging.getLogger(__name__)


@dataclasses.dataclass(eq=False)
class _Request:
    signature: str
    num_rows: int
    free: Mapping[str, Sequence[int]]  # see `_join_rows`


@dataclasses.dataclass(eq=False)
class _Row:
    request: _Request
    inputs: Mapping[str, np.ndarray]  # [1, ...]
    group: tuple  # the signature, and the shape of each input
    length: int  # in tokens, estimated
    answer: asyncio.Future


class Batcher:
    """Runs an engine in a thread of its own, one batch at a time; `model` is its name in the metrics."""

    def __init__(self, model: str, engine: Engine, options: ServerOptions, metrics: Metrics):
        self._model, self._engine, self._options, self._metrics = model, engine, options, metrics
        metrics.waiting_rows.labels(model).set_function(lambda: self.waiting)
        reads_all = engine.reads_windows or _OF_ALL_TOKENS & engine.signatures["serving_default"].outputs.keys()
        self._max_row_tokens = MAX_ROW_TOKENS if reads_all else math.inf
        self._rows: list[_Row] = []  # those that wait
        self._changed = asyncio.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "engine")
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run_batches())

    @property
    def waiting(self) -> int:
        """Number of rows that wait."""
        return len(self._rows)

    async def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Answers a request, as `Engine.run`, whose arrays fit the signature.

        Raises:
            ValueError: a row is too long or cannot be answered, there are more rows than the queue holds, or the answer
                is too large.
            QueueFullError: there is no room in the queue.
            TimeoutError: the answer took too long.
        """
        options, rows = self._options, len(next(iter(inputs.values()), ()))
        if rows > options.max_queue:
            raise ValueError(f"A request must have at most {options.max_queue} rows. Received: {rows}; split it.")
        if self.waiting + rows > options.max_queue:
            raise QueueFullError(f"{self.waiting} rows are waiting, and at most {options.max_queue} may; retry.")
        request = _Request(signature, rows, self._free_outputs(signature))
        try:
            async with asyncio.timeout(options.timeout):
                if not inputs:
                    return await self._call(signature, {})
                answers = [row.answer for row in self._enqueue(request, inputs)]
                outputs = await asyncio.gather(*answers)
        except TimeoutError:
            raise TimeoutError(f"The answer took longer than {options.timeout:g} seconds.") from None
        finally:
            self._rows = [row for row in self._rows if row.request is not request]
        return await asyncio.to_thread(_join_rows, outputs, request.free)

    def retire(self) -> None:
        """Ends the thread when no request can be running anymore that found this model."""
        self._loop.call_later(self._options.read_timeout + self._options.timeout, self.close)

    def close(self) -> None:
        """Ends the thread; no request may be running."""
        self._task.cancel()
        self._thread.shutdown(wait=False)
        # A SavedModel is freed with the cycles of its functions, later, when no frame holds it.
        self._loop.call_later(1, gc.collect)

    def _enqueue(self, request: _Request, inputs: Mapping[str, np.ndarray]) -> list[_Row]:
        group = (request.signature, *((name, array.shape[1:]) for name, array in sorted(inputs.items())))
        rows = []
        for index in range(request.num_rows):
            row = {name: array[index : index + 1] for name, array in inputs.items()}
            length = _num_tokens([array[0] for array in row.values()])
            if length > self._max_row_tokens:
                raise ValueError(
                    f"Row {index} must have at most {self._max_row_tokens} tokens, all choices padded to the longest "
                    f"one and with the context each; split it. Received: about {length}."
                )
            rows.append(_Row(request, row, group, min(LONG, length), self._loop.create_future()))
        self._rows += rows
        self._changed.set()
        return rows

    async def _run_batches(self) -> None:
        while True:
            while not self._rows:
                self._changed.clear()
                await self._changed.wait()
            rows = self._take([row for row in self._rows if row.group == self._rows[0].group])
            self._metrics.batch_rows.labels(self._model).observe(len(rows))
            await self._answer(rows)

    def _take(self, rows: list[_Row]) -> list[_Row]:
        """The first row of a group, which has waited longest, and those whose lengths are closest to its own."""
        first, *others = rows
        taken, longest = [first], first.length

        def difference(row: _Row) -> int:
            return abs(row.length - first.length)

        for row in heapq.nsmallest(self._options.max_batch_size - 1, others, key=difference):
            longest = max(longest, row.length)
            is_alike = difference(row) <= max(MAX_DIFFERENCE, first.length // 4)
            if not is_alike or (len(taken) + 1) * longest > self._options.max_batch_tokens:
                break
            taken.append(row)
        chosen = set(taken)
        self._rows = [row for row in self._rows if row not in chosen]
        return taken

    async def _answer(self, rows: Sequence[_Row]) -> None:
        """Computes a batch; if a row of it cannot be answered, searches for its request by halves."""
        try:
            inputs = {name: np.concatenate([row.inputs[name] for row in rows]) for name in rows[0].inputs}
            outputs = await self._call(rows[0].request.signature, inputs)
            if wrong := {name: len(array) for name, array in outputs.items() if len(array) != len(rows)}:
                raise RuntimeError(f"The model answered {len(rows)} rows with other numbers of rows: {wrong}.")
        except ValueError as error:
            requests = list(dict.fromkeys(row.request for row in rows))
            if len(requests) == 1:
                _fail(rows, error)
                return
            half = set(requests[: len(requests) // 2])
            await self._answer([row for row in rows if row.request in half])
            await self._answer([row for row in rows if row.request not in half])
        except Exception as error:
            _logger.exception("The model failed on a batch of %d rows.", len(rows))
            _fail(rows, error)
        else:
            for position, row in enumerate(rows):
                self._deliver(row, {name: array[position : position + 1] for name, array in outputs.items()})

    def _deliver(self, row: _Row, outputs: Mapping[str, np.ndarray]) -> None:
        """Keeps the answer of a row; fails its request as soon as it is known that all rows together are too large."""
        if row.answer.done():
            return
        request, limit = row.request, self._options.max_answer
        # Without the padding of other rows, so that what a request may have does not depend on other requests.
        outputs = _join_rows([outputs], request.free)
        size = request.num_rows * sum(array.nbytes for array in outputs.values())
        if size <= limit:
            row.answer.set_result(outputs)
            return
        message = (
            f"The answer would have {size:,} bytes, {request.num_rows} rows as large as this one, and must have at "
            f"most {limit:,}; send fewer rows, or start the server with a larger --max-answer-mb."
        )
        _fail([row], ValueError(message))

    async def _call(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return await self._loop.run_in_executor(self._thread, self._run_engine, signature, inputs)

    def _run_engine(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        with count_texts() as counts:
            outputs = self._engine.run(signature, inputs)
        self._metrics.cut_texts.labels(self._model).inc(counts.cut)
        self._metrics.empty_texts.labels(self._model).inc(counts.empty)
        return outputs

    def _free_outputs(self, signature: str) -> dict[str, list[int]]:
        """The axes of outputs whose size depends on the texts of a batch, and not on the shapes of the inputs."""
        spec = self._engine.signatures[signature]
        if any(len(one.shape) > 1 for one in spec.inputs.values()):
            return {}
        axes = {
            name: [axis for axis, size in enumerate(output.shape) if axis and size is None]
            for name, output in spec.outputs.items()
        }
        return {name: of_output for name, of_output in axes.items() if of_output}


def _num_tokens(row: Sequence) -> int:
    """The number of tokens of texts, of a text and its choices, or of ids, whose inputs have equal shapes."""
    arrays = [value for value in row if not isinstance(value, bytes)]
    choices = [value for value in arrays if value.dtype == object]
    longest = sum(len(value) for value in row if isinstance(value, bytes)) + sum(max(map(len, one)) for one in choices)
    num_choices = max(map(len, choices), default=1)
    return num_choices * longest // BYTES_PER_TOKEN + max(
        (one.size for one in arrays if one.dtype != object), default=0
    )


def _fail(rows: Sequence[_Row], error: Exception) -> None:
    for row in rows:
        if not row.answer.done():
            row.answer.set_exception(error)


def _join_rows(rows: Sequence[Mapping[str, np.ndarray]], free: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Concatenates rows that were computed in several batches.

    Args:
        rows: arrays by name, [1, ...].
        free: by name of the array, the axes whose size differs from batch to batch; they have one size. They are padded
            with `""`, -1 or 0, and what is padding in all rows is removed, so that an answer does not depend on other
            requests.
    """
    arrays = {name: [row[name] for row in rows] for name in rows[0]}
    joined = {name: np.concatenate(list(_padded(array)) if name in free else array) for name, array in arrays.items()}
    # A text says where padding begins; a number may be 0 itself.
    deciding = [name for name in free if joined[name].dtype == object] or list(free)
    used = max((_used(joined[name], free[name][0]) for name in deciding), default=0)
    for name, axes in free.items():
        cut = tuple(slice(used if axis in axes else None) for axis in range(joined[name].ndim))
        joined[name] = joined[name][cut]
    return joined


def _padded(arrays: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    shape = np.max([array.shape for array in arrays], axis=0)
    for array in arrays:
        padded = np.full(shape, _PADDING[array.dtype.kind], array.dtype)
        padded[tuple(map(slice, array.shape))] = array
        yield padded


def _used(array: np.ndarray, axis: int) -> int:
    """The number of entries along an axis before those that are padding in every row."""
    others = tuple(other for other in range(array.ndim) if other != axis)
    is_used = (array != _PADDING[array.dtype.kind]).any(axis=others)
    return int(is_used.nonzero()[0].max(initial=-1)) + 1
