"""The devices and machines of a run: one device, all of a machine, all of many machines, or TPUs."""

import contextlib
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.trainer.cluster import Cluster
from albert_tf.trainer.recipe import Strategy
from albert_tf.trainer.rendezvous import Company, meet

_OF_LOSS = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
)


class Devices:
    """A strategy of tf.distribute, and this process' part in it.

    Args:
        strategy: `tf.distribute.Strategy`.
        cluster: Cluster where there are several processes, else None.
        company: those processes.
    """

    def __init__(
        self, strategy: tf.distribute.Strategy, cluster: Cluster | None = None, company: Company | None = None
    ):
        self.strategy, self.cluster, self._company = strategy, cluster, company
        self._sum = tf.function(self._sum_over_processes)

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that writes and reports."""
        return self.cluster is None or self.cluster.is_chief

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

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process; all have to ask, at the same step."""
        return flag if self.cluster is None else float(self._sum(tf.constant(float(flag)))) > 0

    def wait_for_all(self) -> None:
        """Returns when every process has come this far."""
        self.any(False)

    @contextlib.contextmanager
    def naming_lost_workers(self) -> Iterator[None]:
        """Turns TensorFlow's error about a worker that has gone into one sentence.

        Raises:
            RuntimeError: a worker has gone.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if self.cluster is None or not (isinstance(error, _OF_LOSS) or "Collective ops" in error.message):
                raise
            raise RuntimeError(
                f"Every worker must stay alive and within reach. Received: {_lost(self.cluster, error.message)}; look "
                "at its last lines, then start all workers again with the same command to go on from the newest "
                "checkpoint."
            ) from None

    def _sum_over_processes(self, value: tf.Tensor) -> tf.Tensor:
        values = self.strategy.run(lambda: value)
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, values, axis=None)


def shared_evenly(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Held-out data whose last batch may be smaller: every host reads all, and Keras deals out each batch."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return dataset.with_options(options)


def connect(kind: Strategy, facts: Callable[[], Mapping[str, Any]]) -> Devices:
    """Finds the devices that a recipe asks for; comes before anything else that TensorFlow does.

    Args:
        kind: `"one_device"`; `"mirrored"`, all devices of this machine; `"multi_worker"`, all machines that TF_CONFIG
            names; `"tpu"`.
        facts: gives what must be the same at every worker; asked where there are several.

    Returns:
        Devices.

    Raises:
        ValueError: TF_CONFIG cannot be, the workers differ, or there is no TPU.
        OSError: a worker has not come in time, or its port is taken.
    """
    if kind == "mirrored":
        return Devices(tf.distribute.MirroredStrategy())
    if kind == "multi_worker":
        cluster = Cluster.from_environment()
        with meet(cluster, facts()) as company, _keeping_signals():
            devices = Devices(tf.distribute.MultiWorkerMirroredStrategy(), cluster, company)
            devices.wait_for_all()
        return devices
    if kind == "tpu":
        return Devices(_tpu_strategy())
    return Devices(tf.distribute.get_strategy())


@contextlib.contextmanager
def _keeping_signals() -> Iterator[None]:
    """Puts back who hears SIGTERM: TensorFlow takes it for itself when many machines start, and then ignores it."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(os.environ.get("TPU_NAME", "local"))
    except (ValueError, OSError, tf.errors.OpError) as error:
        raise ValueError(
            f'A run with strategy="tpu" must find one. Received: {str(error).splitlines()[0]}; run it on a TPU VM, set '
            "TPU_NAME to the name of a TPU, or choose another strategy."
        ) from None
    return tf.distribute.TPUStrategy(resolver)


def _lost(cluster: Cluster, message: str) -> str:
    tasks = dict.fromkeys(int(task) for task in re.findall(r"task:(\d+)", message))
    others = [task for task in tasks if task < len(cluster.addresses) and task != cluster.index]
    lost = [f"worker {task} ({cluster.addresses[task]})" for task in others]
    reason = message.splitlines()[0].rpartition("}} ")[2]  # without the names of TensorFlow's own functions
    return f"no answer from {', '.join(lost) or f'the others ({reason})'}"
