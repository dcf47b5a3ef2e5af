"""Which rows of each batch one host reads, so that many hosts together read what one would.

Letters: B batch over all hosts, b rows of one replica.
"""

from dataclasses import dataclass

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class InputShard:
    """One host's rows of every batch: host `index` of `count` gets the `index`-th stretch of them.

    Batches and their order are the same however many hosts share them.

    Args:
        index: this host, from 0.
        count: hosts in all.
        parts: replicas on this host; each takes an element of the dataset in turn.
    """

    index: int = 0
    count: int = 1
    parts: int = 1

    @property
    def pieces(self) -> int:
        """Replicas in all."""
        return self.count * self.parts

    def take(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Cuts this host's rows out of whole batches.

        Args:
            batches: dataset of tensors [B, ...], B known.

        Returns:
            Dataset of tensors [b, ...], `parts` of them for each batch.

        Raises:
            ValueError: B is not a multiple of the number of replicas.
        """
        if self.pieces == 1:
            return batches
        self.piece_size(batches.element_spec.shape[0])
        first = self.index * self.parts
        pieces = batches.map(lambda batch: tf.stack(tf.split(batch, self.pieces)[first : first + self.parts])).unbatch()
        # `unbatch` forgets how many there are, and tf.distribute would ask all hosts at each step.
        count = batches.cardinality()
        return pieces.apply(tf.data.experimental.assert_cardinality(count * self.parts if count > 0 else count))

    def piece_size(self, batch_size: int | None) -> int:
        """b, the rows of one replica.

        Raises:
            ValueError: B is not a multiple of the number of replicas.
        """
        if batch_size is None or batch_size % self.pieces:
            raise ValueError(
                f"`batch_size` must be a multiple of the number of devices. Received: batch_size={batch_size}, "
                f"{self.pieces} devices; round it."
            )
        return batch_size // self.pieces

    def rows(self, batch_size: int) -> np.ndarray:
        """Which rows of a batch are this host's: bool [B]."""
        replica = np.arange(batch_size) // self.piece_size(batch_size)
        return replica // self.parts == self.index


EVERYTHING = InputShard()
