"""The devices of a run: one device, all devices of one or several machines, or TPUs."""

import contextlib
import functools
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
from tensorflow.python.client import device_lib

from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.trainer.recipe import Strategy, TrainingRecipe

_WORKER_LOST_ERRORS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


class WorkerLostError(RuntimeError):
    """Another worker was lost or could not be reached; a command ends with EX_TEMPFAIL, and may be started again."""

    exit_status = 75


class Devices:
    """A tf.distribute strategy and the role of this process in it.

    Args:
        strategy: `tf.distribute.Strategy`.
        addresses: `host:port` of each worker, the chief's first; empty with a single process.
        index: index of this worker; 0 is the chief, which writes all files.
    """

    def __init__(self, strategy: tf.distribute.Strategy, addresses: tuple[str, ...] = (), index: int = 0):
        self.strategy, self.addresses, self.index = strategy, addresses, index
        self._sum = tf.function(self._sum_over_replicas, autograph=False)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes files and reports."""
        return self.index == 0

    @property
    def has_workers(self) -> bool:
        """Whether several processes train together."""
        return len(self.addresses) > 1

    def describe(self) -> str:
        """The devices that the run trains on, for display."""
        accelerators, used = _accelerators(), self.strategy.num_replicas_in_sync
        idle = 0 if self.addresses else len(accelerators) - used
        hint = f'; strategy = "mirrored" would also use the other {idle}' if idle > 0 else ""
        return f"training on {used} {accelerators[0] if accelerators else 'CPU'}{hint}"

    def distribute(self, make_dataset: Callable[[InputShard], tf.data.Dataset]) -> Any:
        """A dataset for `model.fit` of which each host reads its own rows.

        Args:
            make_dataset: function of this host's InputShard that returns a dataset.
        """
        if self.strategy.num_replicas_in_sync == 1:
            return make_dataset(EVERYTHING)

        def for_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
            hosts = context.num_input_pipelines
            return make_dataset(InputShard(context.input_pipeline_id, hosts, context.num_replicas_in_sync // hosts))

        return self.strategy.distribute_datasets_from_function(for_host)

    def any_worker(self, flag: bool) -> bool:
        """Whether the flag is set in any process; every process must call this at the same step."""
        return float(self._sum(tf.constant(float(flag)))) > 0 if self.has_workers else flag

    def barrier(self) -> None:
        """Waits until every process has reached this point."""
        self.any_worker(False)

    def check_memory(self, training: TrainingRecipe, activations: float) -> None:
        """Checks that a batch can fit in main memory, or in that of GPUs; TPUs are not checked.

        Args:
            training: TrainingRecipe.
            activations: number of values that one example keeps for the backward pass.

        Raises:
            ValueError: the activations of this machine's or a GPU's rows alone need more memory than it has.
        """
        on_gpus = self.gpu_memory > 0
        share = self.strategy.num_replicas_in_sync if on_gpus else max(len(self.addresses), 1)
        rows = training.batch_size / training.gradient_accumulation_steps / share
        needed = rows * activations * (4 if training.dtype_policy == "float32" else 2)
        available = self.gpu_memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if training.remat == "none" and needed > available and "TPU" not in _accelerators():
            raise ValueError(
                f"batch_size={training.batch_size} needs at least {needed / 2**30:,.0f} GiB for activations, and "
                f"{'a GPU' if on_gpus else 'this machine'} has {available / 2**30:,.0f} GiB; lower it, or use "
                "`gradient_accumulation_steps` or `remat`."
            )

    def keeps_scores(self, dtype_policy: str) -> bool:
        """Whether attention probabilities are kept for the backward pass; flash attention of GPUs keeps none."""
        return not self.gpu_memory or dtype_policy == "float32"

    @functools.cached_property
    def gpu_memory(self) -> int:
        """Bytes that TensorFlow may use of the smallest GPU; 0 without GPUs."""
        if "GPU" not in _accelerators():
            return 0
        return min(gpu.memory_limit for gpu in device_lib.list_local_devices() if gpu.device_type == "GPU")

    def check_agreement(self, facts: Mapping[str, Any]) -> None:
        """Checks, before training, that all workers are about to do the same.

        Args:
            facts: JSON values by name that must be equal on every worker.

        Raises:
            ValueError: on every worker, if one of them differs from the chief; names the worker and the fact.
        """
        if not self.has_workers:
            return
        hashes = [hashlib.sha256(json.dumps(facts[name], sort_keys=True).encode()).digest() for name in sorted(facts)]
        digests = np.zeros([len(self.addresses), len(facts), 32], np.float32)  # bytes are exact in float32
        digests[self.index] = np.frombuffer(b"".join(hashes), np.uint8).reshape(len(facts), 32)
        replicas = self.strategy.num_replicas_in_sync // len(self.addresses)
        digests = self._sum(tf.constant(digests)).numpy() / replicas
        differing = [
            f"worker {index} ({self.addresses[index]}) in {name}"
            for index in range(1, len(self.addresses))
            for number, name in enumerate(sorted(facts))
            if not np.array_equal(digests[index, number], digests[0, number])
        ]
        if differing:
            raise ValueError(
                f"The workers are not set up for the same run. Different from the chief: {', '.join(differing)}; start "
                "all with the same recipe, vocabulary, examples and output folder."
            )

    @contextlib.contextmanager
    def explain_worker_failure(self) -> Iterator[None]:
        """Turns TensorFlow's error for a lost worker into a WorkerLostError that names it."""
        try:
            yield
        except tf.errors.OpError as error:
            if not self.has_workers or not (
                isinstance(error, _WORKER_LOST_ERRORS) or "Collective ops" in error.message
            ):
                raise
            raise WorkerLostError(
                f"Lost {self._lost(error.message)}; see its log, then restart all workers with the same command to "
                "resume from the newest checkpoint."
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
    """Turns TensorFlow's error for exhausted device memory into a RuntimeError with a cure."""
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


def _accelerators() -> list[str]:
    """The device types of the GPUs and TPU cores visible to this process."""
    types = [device.device_type for device in tf.config.list_logical_devices()]
    return [kind for kind in types if kind in ("GPU", "TPU")]


def shared_evenly(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Held-out data, whose last batch may be smaller: every host reads all rows, and each batch is divided."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def connect(kind: Strategy) -> Devices:
    """Connects to the devices of a recipe. Must be called before any TensorFlow operation.

    Args:
        kind: `"one_device"`; `"mirrored"`, all devices of this machine; `"multi_worker"`, all machines in TF_CONFIG;
            `"tpu"`.

    Raises:
        ValueError: TF_CONFIG is invalid or names several workers for another strategy, or there is no TPU.
        WorkerLostError: the workers could not connect.
    """
    if kind in ("one_device", "mirrored") and _is_one_of_several():
        raise ValueError(
            f'strategy="{kind}", but TF_CONFIG makes this process one of several workers; set '
            'strategy="multi_worker", or unset TF_CONFIG.'
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
        raise WorkerLostError(
            f"Worker {index} ({addresses[index]}) could not connect to the others: "
            f"{_without_node_names(error.message.splitlines()[0])}; check that its port is free and that all workers "
            f"of {', '.join(addresses)} are running, then start all with the same command."
        ) from None
    finally:  # TensorFlow replaces the handler of SIGTERM when workers start
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _is_one_of_several() -> bool:
    with contextlib.suppress(ValueError):
        return len(_cluster()[0]) > 1
    return False


def _cluster() -> tuple[tuple[str, ...], int]:
    """The addresses of the workers in TF_CONFIG, the chief's first, and the index of this process."""
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
            f"TF_CONFIG must name all workers and this one. Received: TF_CONFIG={os.environ.get('TF_CONFIG', '')!r}; "
            'set it like {"cluster": {"worker": ["host-a:12345", "host-b:12345"]}, "task": {"type": "worker", "index": '
            "0}}, with a different index on each host."
        ) from None
    return addresses, index


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(os.environ.get("TPU_NAME", "local"))
    except (ValueError, OSError, tf.errors.OpError) as error:
        problem = f"no TPU was found ({str(error).splitlines()[0]}). Run on a TPU VM, set TPU_NAME"
        if "No OpKernel was registered" in str(error):
            cure = "install tensorflow-tpu in its place (training/launch/tpu_vm.sh does)"
            problem = f"this TensorFlow has no support for TPUs: {cure}"
        raise ValueError(f'strategy="tpu", but {problem}, or choose another strategy.') from None
    return tf.distribute.TPUStrategy(resolver)


def _without_node_names(line: str) -> str:
    """A line of TensorFlow's message without its prefix of graph nodes."""
    return line.rpartition("}} ")[2]
