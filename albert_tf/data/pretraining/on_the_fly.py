"""Makes examples from folders of tokenized documents during training, as a `tf.data.Dataset`.

The examples have a fixed order, so that a host can start at any batch without making the earlier ones. Each epoch reads
the shards in an order of its own. Epoch e takes from each shard the examples of pass e of `prepare`, shuffled, and
always as many as the manifest counts in pass 0. Since target lengths are random, pass e may have a few more, which are
dropped, or fewer, which are replenished from a pass that no epoch uses.

NumPy makes the examples; a thread makes the pairs of the next shard, and `tf.data` prefetches.

Letters: B global batch, L sequence, S shards, X examples.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from albert_tf.data.autotuning import PREFETCHED_BATCHES, without_autotuning
from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.features import Feature, features_to_learn, split_roles
from albert_tf.data.manifest import Manifest, load_vocabulary
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.prng import fold_in, random_bits, splitmix64
from albert_tf.data.shard_files import read_document_shard
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import check_expectations, find_shards, shards_to_read
from albert_tf.files.urls import location

_SHARD_ORDER_STREAM = 200
_BLOCK_TOKENS = 2**18
# First of the passes that replenish others: more than any number of epochs.
_EXTRA_PASSES = 2**32

Arrays = dict[str, npt.NDArray]


def documents_dataset(
    folder: str | Path,
    batch_size: int,
    *,
    max_seq_length: int | None = None,
    vocab_hash: str | None = None,
    objective: Objective | str = Objective.SENTENCE_ORDER,
    skip_corrupt: bool = False,
    first_batch: int = 0,
    shard: InputShard = EVERYTHING,
) -> tf.data.Dataset:
    """Makes batches of pretraining examples from documents, for any number of epochs.

    Args:
        folder: made by `prepare` with `format="documents"`; its options and seed determine the examples.
        batch_size: B.
        max_seq_length: expected L, or None.
        vocab_hash: expected `AlbertTokenizer.vocab_hash`, or None.
        objective: expected objective.
        skip_corrupt: check all shards first, and skip damaged ones with a warning.
        first_batch: the batch to start with; any one takes equally long.
        shard: this host's rows of each batch.

    Returns:
        Dataset of pairs (inputs, labels), as for `pretraining_dataset`.

    Raises:
        ValueError: the folder does not hold documents, is incomplete or was made for another length, vocabulary or
            objective, or a shard is missing, truncated or from another folder; with `skip_corrupt`, all shards are
            damaged. Damage within a shard is found when it is read; see `name_damage`.

    Example:

    >>> import tempfile
    >>> from albert_tf.data import PrepareOptions, prepare
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, documents = Path(folder) / "text.txt", Path(folder) / "documents"
    ...     _ = text.write_text("It rained.\\nIt stopped.\\n")
    ...     options = PrepareOptions(inputs=[text], output_dir=documents, max_seq_length=16, format="documents")
    ...     _ = prepare(options)
    ...     inputs, labels = next(iter(documents_dataset(documents, batch_size=2)))
    >>> inputs["input_ids"].shape, labels["sentence_order_labels"].shape
    (TensorShape([2, 16]), TensorShape([2]))
    """
    shards = find_shards(folder, "documents")
    objective = Objective(objective)
    check_expectations(shards, max_seq_length, vocab_hash, objective)
    paths, to_read = shards_to_read(shards, skip_corrupt)
    manifest = Manifest.load(folder)
    counts = {location(folder) / listed.name: listed.statistics.examples for listed in manifest.shards}
    order = ExampleOrder(manifest.recipe.examples.seed, np.array([counts[path] for path in paths], np.int64))
    if not order.per_epoch:
        raise ValueError(f"The documents in {folder} are too short for any example; prepare more text.")
    source = _Source(to_read, manifest.recipe.examples, load_vocabulary(folder))
    rows = shard.rows(batch_size)
    read = features_to_learn(objective.value)

    def blocks() -> Iterator[Arrays]:
        yield from source.blocks(order.visits(first_batch * batch_size), rows, read)

    signature = {
        feature.name: tf.TensorSpec([None, *feature.row_shape(shards.sizes)], tf.as_dtype(feature.dtype))
        for feature in read
    }
    examples = tf.data.Dataset.from_generator(blocks, output_signature=signature).prefetch(1)
    batches = examples.rebatch(shard.replica_batch_size(batch_size), drop_remainder=True)
    # Without a cardinality, tf.distribute synchronizes the hosts at every step.
    infinite = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    batches = batches.map(lambda batch: split_roles(read, batch)).apply(infinite)
    return without_autotuning(batches.prefetch(PREFETCHED_BATCHES))


@dataclass(frozen=True)
class Visit:
    """Examples `first` to `count` of a shard in an epoch."""

    epoch: int
    shard: int
    first: int
    count: int


@dataclass(frozen=True)
class ExampleOrder:
    """The order of the examples of all epochs.

    Args:
        seed: seed of the order of the shards.
        counts: int64 [S], examples per epoch of each shard.
    """

    seed: int
    counts: npt.NDArray[np.int64]

    @property
    def per_epoch(self) -> int:
        """Examples in an epoch."""
        return int(self.counts.sum())

    def shards(self, epoch: int) -> npt.NDArray[np.int64]:
        """Indices of the shards in the order of an epoch."""
        key = fold_in(fold_in(splitmix64(self.seed), _SHARD_ORDER_STREAM), epoch)
        return np.argsort(random_bits(key, np.arange(len(self.counts))), kind="stable")

    def visits(self, first_example: int) -> Iterator[Visit]:
        """Yields the visits from the example at index `first_example` on, forever."""
        first_epoch, skipped = divmod(first_example, self.per_epoch)
        for epoch in itertools.count(first_epoch):
            for shard in self.shards(epoch).tolist():
                count = int(self.counts[shard])
                if skipped < count:
                    yield Visit(epoch, shard, skipped, count)
                skipped = max(skipped - count, 0)


@dataclass(frozen=True)
class _Source:
    """Shards of documents, and the options to make examples of them."""

    paths: list[Path]
    options: ExampleOptions
    vocabulary: Vocabulary

    def blocks(
        self, visits: Iterator[Visit], rows: npt.NDArray[np.bool_], features: tuple[Feature, ...]
    ) -> Iterator[Arrays]:
        """Yields examples [X, ...] by feature, only for the batch rows that are True in `rows`: bool [B]."""
        block_size, row = max(1, _BLOCK_TOKENS // self.options.max_seq_length), 0
        with ThreadPoolExecutor(max_workers=1) as executor:
            upcoming = executor.submit(self._visit, next(visits))
            while True:
                documents, pairs = upcoming.result()
                upcoming = executor.submit(self._visit, next(visits))
                selected = np.flatnonzero(rows[(row + np.arange(len(pairs))) % len(rows)])
                row = (row + len(pairs)) % len(rows)
                for start in range(0, len(selected), block_size):
                    block = pairs.take(selected[start : start + block_size])
                    examples = vars(make_examples(documents, block, self.options, self.vocabulary))
                    # Sentence-pair labels are named after the objective, see `features_to_learn`.
                    examples[f"{self.options.objective.value}_labels"] = examples["sentence_order_labels"]
                    yield {feature.name: examples[feature.name] for feature in features}

    def _visit(self, visit: Visit) -> tuple[TokenizedDocuments, Pairs]:
        documents = read_document_shard(self.paths[visit.shard])
        pairs = make_pairs(documents, [visit.epoch], self.options).shuffled()
        extra_pass = visit.epoch
        while len(pairs) < visit.count:
            extra_pass += _EXTRA_PASSES
            pairs = Pairs.concatenate([pairs, make_pairs(documents, [extra_pass], self.options).shuffled()])
        return documents, pairs.take(slice(visit.first, visit.count))
