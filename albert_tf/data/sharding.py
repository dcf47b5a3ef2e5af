"""Which rows of each batch a host reads.

Letters: B global batch, b rows per replica.
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class InputShard:
    """The rows of every batch that one host reads; the global batches do not depend on the number of hosts.

    Args:
        index: this host, from 0.
        count: number of hosts.
        replicas_per_host: replicas on each host.
    """

    index: int = 0
    count: int = 1
    replicas_per_host: int = 1

    @property
    def num_replicas(self) -> int:
        """Replicas on all hosts."""
        return self.count * self.replicas_per_host

    @property
    def replicas(self) -> range:
        """Indices of this host's replicas."""
        return range(self.index * self.replicas_per_host, (self.index + 1) * self.replicas_per_host)

    def take(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Turns a dataset of global batches [B, ...] into one of this host's replica batches [b, ...]."""
        if self.num_replicas == 1:
            return batches
        self.replica_batch_size(batches.element_spec.shape[0])
        local = slice(self.replicas.start, self.replicas.stop)
        shards = batches.map(lambda batch: tf.stack(tf.split(batch, self.num_replicas)[local])).unbatch()
        # `unbatch` loses the cardinality; without it tf.distribute synchronizes the hosts at every step.
        count = batches.cardinality()
        count = count * self.replicas_per_host if count > 0 else count
        return shards.apply(tf.data.experimental.assert_cardinality(count))

    def replica_batch_size(self, batch_size: int | None) -> int:
        """b, the rows of one replica.

        Raises:
            ValueError: B is not a multiple of the number of replicas.
        """
        if batch_size is None or batch_size % self.num_replicas:
            raise ValueError(
                f"`batch_size` must be a multiple of the number of devices. Received: batch_size={batch_size}, "
                f"{self.num_replicas} devices. Round it."
            )
        return batch_size // self.num_replicas

    def rows(self, batch_size: int) -> np.ndarray:
        """Mask of this host's rows of a batch: bool [B]."""
        replica = np.arange(batch_size) // self.replica_batch_size(batch_size)
        return replica // self.replicas_per_host == self.index


EVERYTHING = InputShard()
