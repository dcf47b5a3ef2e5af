"""Folders of tokenised documents become a `tf.data` pipeline of batches: examples are made while the model trains.

The examples have a fixed order, so that any host can begin at any batch without making those before. In each epoch the
shards follow one another in an order of that epoch. A visit to a shard gives as many examples as the manifest counted
in pass 0, in random order: those that `prepare` makes in pass e. Passes differ a little in length, as target lengths
are drawn at random: what pass e has more is left out, what it has less is filled up from a pass that no epoch reaches.

NumPy makes the examples, the next visit's pairs on a thread of their own, and `tf.data` runs ahead of the model.

Letters: B batch over all hosts, b rows of one replica, L sequence, P predictions, S shards, X examples.
"""

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.features import Feature, Role, features_to_learn, with_role
from albert_tf.data.manifest import Manifest, load_vocabulary
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.prng import fold_in, random_bits, splitmix64
from albert_tf.data.shard_files import read_document_shard
from albert_tf.data.sharding import EVERYTHING, InputShard
from albert_tf.data.sources import check_expectations, complete_shards, find_shards, undamaged_shards

_SHARD_ORDER_STREAM = 200
_TOKENS_AT_ONCE = 2**18
# Far above any number of epochs, far below 2**64.
_FILLING_PASSES = 2**32

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
    """Makes batches of pretraining examples from documents, epoch after epoch without end.

    Args:
        folder: made by `prepare` with `format="documents"`; its options and its seed decide the examples.
        batch_size: B.
        max_seq_length: L that the caller expects, or None.
        vocab_hash: hash of the vocabulary that the caller expects (`AlbertTokenizer.vocab_hash`), or None.
        objective: what the examples are to teach beside masked tokens; a folder made for another one is refused.
        skip_corrupt: read every shard through first and leave damaged ones out with a warning.
        first_batch: the batch to begin with; that takes no longer than beginning with the first.
        shard: which rows of each batch to give, where several hosts share it.

    Returns:
        Dataset of pairs (inputs, labels), as `pretraining_dataset` gives them.

    Raises:
        ValueError: the folder is not a finished one of documents, was made for another length, vocabulary or objective,
            or a shard is of another folder, missing, cut short or (with `skip_corrupt`, where none is left) damaged.
            Damage inside a shard is found when it is read; see `name_damage`.

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
    found = find_shards(folder, "documents")
    objective = Objective(objective)
    check_expectations(found, max_seq_length, vocab_hash, objective)
    paths = undamaged_shards(found) if skip_corrupt else complete_shards(found)
    manifest = Manifest.load(folder)
    counts = {Path(folder) / listed.name: listed.statistics.examples for listed in manifest.shards}
    order = ExampleOrder(manifest.recipe.examples.seed, np.array([counts[path] for path in paths], np.int64))
    if not order.per_epoch:
        raise ValueError(f"No example can be made of the documents in {folder}; prepare more text.")
    source = _Source(paths, manifest.recipe.examples, load_vocabulary(folder))
    own_rows = shard.rows(batch_size)
    read = features_to_learn(objective.value)

    def blocks() -> Iterator[Arrays]:
        yield from source.blocks(order.visits(first_batch * batch_size), own_rows, read)

    signature = {
        feature.name: tf.TensorSpec([None, *feature.row_shape(found.sizes)], tf.as_dtype(feature.dtype))
        for feature in read
    }
    examples = tf.data.Dataset.from_generator(blocks, output_signature=signature).prefetch(1)
    batches = examples.rebatch(shard.replica_batch_size(batch_size), drop_remainder=True)

    def split(batch: dict[str, tf.Tensor]):
        def select(role: Role) -> dict[str, tf.Tensor]:
            return {feature.name: batch[feature.name] for feature in with_role(read, role)}

        return select("input"), select("label")

    # A generator's length is unknown to `tf.data`, and tf.distribute would ask all hosts at each step.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.map(split).apply(endless).prefetch(tf.data.AUTOTUNE)


@dataclass(frozen=True)
class Visit:
    """Examples that follow one another: those of a shard in an epoch, from `first` on."""

    epoch: int
    shard: int
    first: int
    count: int


@dataclass(frozen=True)
class ExampleOrder:
    """The order of all examples of all epochs.

    Args:
        seed: of the order of shards.
        counts: int64 [S], the examples of a visit to each shard.
    """

    seed: int
    counts: npt.NDArray[np.int64]

    @property
    def per_epoch(self) -> int:
        """Examples in an epoch."""
        return int(self.counts.sum())

    def shards(self, epoch: int) -> npt.NDArray[np.int64]:
        """Numbers of the shards in the order in which an epoch reads them."""
        key = fold_in(fold_in(splitmix64(self.seed), _SHARD_ORDER_STREAM), epoch)
        return np.argsort(random_bits(key, np.arange(len(self.counts))), kind="stable")

    def visits(self, first_example: int) -> Iterator[Visit]:
        """Yields visits without end, the first of which begins with an example given by its number in the order."""
        first_epoch, skipped = divmod(first_example, self.per_epoch)
        for epoch in itertools.count(first_epoch):
            for shard in self.shards(epoch).tolist():
                count = int(self.counts[shard])
                if skipped < count:
                    yield Visit(epoch, shard, skipped, count)
                skipped = max(skipped - count, 0)


@dataclass(frozen=True)
class _Source:
    """Shards of documents and how to make examples of them."""

    paths: list[Path]
    options: ExampleOptions
    vocabulary: Vocabulary

    def blocks(
        self, visits: Iterator[Visit], own_rows: npt.NDArray[np.bool_], features: tuple[Feature, ...]
    ) -> Iterator[Arrays]:
        """Yields examples [X, ...] by feature: of every len(own_rows) examples those that are True in `own_rows`."""
        at_once, row = max(1, _TOKENS_AT_ONCE // self.options.max_seq_length), 0
        with ThreadPoolExecutor(max_workers=1) as executor:
            following = executor.submit(self._visit, next(visits))
            while True:
                documents, pairs = following.result()
                following = executor.submit(self._visit, next(visits))
                own = np.flatnonzero(own_rows[(row + np.arange(len(pairs))) % len(own_rows)])
                row = (row + len(pairs)) % len(own_rows)
                for start in range(0, len(own), at_once):
                    block = pairs.take(own[start : start + at_once])
                    examples = vars(make_examples(documents, block, self.options, self.vocabulary))
                    # Labels of the sentence pair are named after what they teach, and are the only ones renamed.
                    examples[f"{self.options.objective.value}_labels"] = examples["sentence_order_labels"]
                    yield {feature.name: examples[feature.name] for feature in features}

    def _visit(self, visit: Visit) -> tuple[TokenizedDocuments, Pairs]:
        documents = read_document_shard(self.paths[visit.shard])
        pairs = make_pairs(documents, [visit.epoch], self.options).shuffled()
        filling = visit.epoch
        while len(pairs) < visit.count:
            filling += _FILLING_PASSES
            pairs = pairs.followed_by(make_pairs(documents, [filling], self.options).shuffled())
        return documents, pairs.take(slice(visit.first, visit.count))
