"""16 hosts together read each example of an epoch once, whichever format the examples come from."""

from collections import Counter

import pytest

from albert_tf.data import PrepareOptions, documents_dataset, prepare, pretraining_dataset
from albert_tf.data.sharding import InputShard
from tests.data.small_corpus import CORPUS

HOSTS, BATCH = 16, 64


@pytest.mark.exhaustive  # 16 datasets
@pytest.mark.parametrize(("kind", "read"), [("examples", pretraining_dataset), ("documents", documents_dataset)])
def test_each_example_is_read_by_one_of_16_hosts(kind, read, tmp_path):
    lines = [line for line in CORPUS.read_text().splitlines() if line]
    text = "\n\n".join("\n".join(lines[start : start + 8]) for start in range(0, len(lines), 8))
    (tmp_path / "text.txt").write_text(text)
    options = {"max_seq_length": 32, "dupe_factor": 1, "num_shards": 5, "format": kind}
    done = prepare(PrepareOptions(inputs=(tmp_path / "text.txt",), output_dir=tmp_path / kind, **options))
    examples = sum(shard.statistics.examples for shard in done.manifest.shards)
    batches = -(-examples // BATCH)  # the last one also has the first of the next epoch
    assert batches > 1

    def rows(shard: InputShard) -> list[bytes]:
        dataset = read(done.folder, BATCH, shard=shard).take(batches)
        return [
            bytes(ids) + bytes(positions)
            for inputs, _ in dataset
            for ids, positions in zip(inputs["input_ids"].numpy(), inputs["masked_lm_positions"].numpy())
        ]

    whole = rows(InputShard())
    assert len(whole) == batches * BATCH
    epoch = Counter(whole[:examples])
    assert len(epoch) > 0.95 * examples  # hardly two of them are equal
    assert Counter(row for host in range(HOSTS) for row in rows(InputShard(host, HOSTS))) == Counter(whole)
    if kind == "examples":
        in_order = read(done.folder, BATCH, shuffle=False, repeat=False, drop_remainder=False)
        assert epoch == Counter(
            bytes(ids) + bytes(positions)
            for inputs, _ in in_order
            for ids, positions in zip(inputs["input_ids"].numpy(), inputs["masked_lm_positions"].numpy())
        )
