"""The devices and machines of a run: one device, all of a machine, all of many machines, or TPUs."""

import contextlib
import hashlib
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.trainer.recipe import Strategy

_VARIABLE = "TF_CONFIG"
_EXAMPLE = (
    '{"cluster": {"worker": ["host-a:12345", "host-b:12345"]}, "task": {"type": "worker", "index": 0}}, with an index '
    "of its own on each host"
)
_WORKER_LOST_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


class Devices:
    """A strategy of tf.distribute, and this process' part in it.

    Args:
        strategy: `tf.distribute.Strategy`.
        addresses: `host:port` of each worker, the chief's first; empty with a single process.
        index: this worker's index among them; the chief, which alone writes, has 0.
    """

    def __init__(self, strategy: tf.distribute.Strategy, addresses: tuple[str, ...] = (), index: int = 0):
        self.strategy, self.addresses, self.index = strategy, addresses, index
        self._sum = tf.function(self._sum_over_replicas)

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes and reports."""
        return self.index == 0

    @property
    def has_workers(self) -> bool:
        """Whether several processes train together."""
        return len(self.addresses) > 1

    def describe(self) -> str:
        """The devices that the run trains on, in a few words."""
        found, used = _accelerators(), self.strategy.num_replicas_in_sync
        idle = 0 if self.addresses else len(found) - used
        hint = f'; strategy = "mirrored" would use the other {idle}, too' if idle > 0 else ""
        return f"training on {used} {found[0] if found else 'CPU'}{hint}"

    def distribute(self, make_dataset: Callable[[InputShard], tf.data.Dataset]) -> Any:
        """Training data of which each host reads its own rows.

        Args:
            make_dataset: from this host's shard to a dataset.

        Returns:
            What `model.fit` takes.
        """
        if self.strategy.num_replicas_in_sync == 1:
            return make_dataset(EVERYTHING)

        def of_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
            hosts = context.num_input_pipelines
            return make_dataset(InputShard(context.input_pipeline_id, hosts, context.num_replicas_in_sync // hosts))

        return self.strategy.distribute_datasets_from_function(of_host)

    def any_worker(self, flag: bool) -> bool:
        """Whether the flag is set in any process; all have to call this, at the same step."""
        return float(self._sum(tf.constant(float(flag)))) > 0 if self.has_workers else flag

    def barrier(self) -> None:
        """Returns when every process has come this far."""
        self.any_worker(False)

    def check_agreement(self, facts: Mapping[str, Any]) -> None:
        """Compares what the workers are about to do, before any of them trains.

        Args:
            facts: by name, values that JSON can hold and that must be equal at every worker.

        Raises:
            ValueError: at every worker, if one differs from the chief; it is named with what differs.
        """
        if not self.has_workers:
            return
        own = [hashlib.sha256(json.dumps(facts[name], sort_keys=True).encode()).digest() for name in sorted(facts)]
        digests = np.zeros([len(self.addresses), len(facts), 32], np.float32)  # bytes are exact in float32
        digests[self.index] = np.frombuffer(b"".join(own), np.uint8).reshape(len(facts), 32)
        replicas = self.strategy.num_replicas_in_sync // len(self.addresses)
        digests = self._sum(tf.constant(digests)).numpy() / replicas
        found = [
            f"worker {index} ({self.addresses[index]}) in {name}"
            for index in range(1, len(self.addresses))
            for number, name in enumerate(sorted(facts))
            if not np.array_equal(digests[index, number], digests[0, number])
        ]
        if found:
            raise ValueError(
                f"The workers would not train the same run; these differ from the chief: {', '.join(found)}; start all "
                "with the same recipe, vocabulary, examples and output folder."
            )

    @contextlib.contextmanager
    def explain_worker_failure(self) -> Iterator[None]:
        """Turns TensorFlow's error about a lost worker into one sentence.

        Raises:
            RuntimeError: a worker was lost.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if not self.has_workers or not (
                isinstance(error, _WORKER_LOST_ERRORS) or "Collective ops" in error.message
            ):
                raise
            raise RuntimeError(
                f"Lost {self._lost(error.message)}; look at its last lines, then start all workers again with the same "
                "command to go on from the newest checkpoint."
            ) from None

    def _lost(self, message: str) -> str:
        tasks = dict.fromkeys(int(task) for task in re.findall(r"task:(\d+)", message))
        lost = [
            f"worker {task} ({self.addresses[task]})"
            for task in tasks
            if task < len(self.addresses) and task != self.index
        ]
        return ", ".join(lost) or f"another worker ({_without_node_names(message.splitlines()[0])})"

    def _sum_over_replicas(self, value: tf.Tensor) -> tf.Tensor:
        values = self.strategy.run(lambda: value)
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)


@contextlib.contextmanager
def explain_out_of_memory(batch_size: int) -> Iterator[None]:
    """Turns TensorFlow's error about memory into one sentence.

    Raises:
        RuntimeError: a step does not fit into the memory of a device.
    """
    try:
        yield
    except tf.errors.ResourceExhaustedError as error:
        # TensorFlow raises the same error for a full disk.
        lines = [_without_node_names(line) for line in error.message.splitlines() if "OOM" in line or "memory" in line]
        if not lines:
            raise
        raise RuntimeError(
            f"Out of memory with batch_size={batch_size}: {lines[0]}; use `gradient_accumulation_steps` or `remat`, or "
            "lower `batch_size`."
        ) from None


def check_memory(batch_size: int, activations: float) -> None:
    """Raises ValueError if a batch cannot fit into main memory; that of accelerators is known to TensorFlow alone.

    Args:
        batch_size: for the message.
        activations: numbers that this machine keeps of it, in 4 bytes each.
    """
    needed, there = 4 * activations, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there and not _accelerators():
        raise ValueError(
            f"batch_size={batch_size} needs at least {needed / 2**30:,.0f} GiB for activations, and this machine has "
            f"{there / 2**30:,.0f} GiB; lower it, or in pretraining use `gradient_accumulation_steps` or `remat`."
        )


def _accelerators() -> list[str]:
    """Types of the GPUs and TPU cores that this process sees."""
    types = [device.device_type for device in tf.config.list_logical_devices()]
    return [kind for kind in types if kind in ("GPU", "TPU")]


def shared_evenly(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Held-out data whose last batch may be smaller: every host reads all, and Keras divides each batch."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def connect(kind: Strategy) -> Devices:
    """Finds the devices that a recipe asks for; comes before anything else that TensorFlow does.

    Args:
        kind: `"one_device"`; `"mirrored"`, all devices of this machine; `"multi_worker"`, all machines that TF_CONFIG
            names; `"tpu"`.

    Returns:
        Devices.

    Raises:
        ValueError: TF_CONFIG is invalid or names several workers for another strategy, or there is no TPU.
        RuntimeError: the workers could not connect.
    """
    if kind in ("one_device", "mirrored") and _is_one_of_several():
        raise ValueError(
            f'strategy="{kind}", but {_VARIABLE} makes this process one of several workers; set '
            f'strategy="multi_worker", or unset {_VARIABLE}.'
        )
    if kind == "mirrored":
        return Devices(tf.distribute.MirroredStrategy())
    if kind == "multi_worker":
        return _connect_workers()
    if kind == "tpu":
        return Devices(_tpu_strategy())
    return Devices(tf.distribute.get_strategy())


def _connect_workers() -> Devices:
    addresses, index = _cluster()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        return Devices(tf.distribute.MultiWorkerMirroredStrategy(), addresses, index)
    except tf.errors.OpError as error:
        raise RuntimeError(
            f"Worker {index} ({addresses[index]}) could not connect to the others: "
            f"{_without_node_names(error.message.splitlines()[0])}; check that its port is free and that all workers "
            f"of {', '.join(addresses)} are running, then start all with the same command."
        ) from None
    finally:  # TensorFlow takes SIGTERM for itself when workers start, and then ignores it
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _is_one_of_several() -> bool:
    with contextlib.suppress(ValueError):
        return len(_cluster()[0]) > 1
    return False


def _cluster() -> tuple[tuple[str, ...], int]:
    """The workers' addresses that TF_CONFIG names, the chief's first, and this process' index among them."""
    try:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        jobs = resolver.cluster_spec().as_dict()
        addresses = (*jobs.get("chief", ()), *jobs.get("worker", ()))
        first = {"chief": 0, "worker": len(jobs.get("chief", ()))}
        index = first[resolver.task_type] + resolver.task_id
        if not 0 <= index < len(addresses) or len(set(addresses)) < len(addresses):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError(
            f"{_VARIABLE} must name the workers and which of them this is. Received: {_VARIABLE}="
            f"{os.environ.get(_VARIABLE, '')!r}; set it like {_EXAMPLE}."
        ) from None
    return addresses, index


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(os.environ.get("TPU_NAME", "local"))
    except (ValueError, OSError, tf.errors.OpError) as error:
        raise ValueError(
            f'strategy="tpu", but no TPU was found ({str(error).splitlines()[0]}). Run on a TPU VM, set TPU_NAME, or '
            "choose another strategy."
        ) from None
    return tf.distribute.TPUStrategy(resolver)


def _without_node_names(line: str) -> str:
    """A line of TensorFlow's message without the names of graph nodes before it."""
    return line.rpartition("}} ")[2]
