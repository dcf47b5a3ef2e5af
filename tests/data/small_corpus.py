"""Small documents and vocabularies for the tests of this folder."""

import dataclasses
from pathlib import Path

import numpy as np

from albert_tf.data import PrepareOptions
from albert_tf.data.corpus import TokenizedDocuments, Vocabulary

GOLDEN = Path(__file__).parent.parent / "golden" / "P1_pretraining_examples"
CORPUS = GOLDEN / "corpus.txt"
LINES = [line for line in CORPUS.read_text().splitlines() if line][:1200]

# Ids below 5 are special, even ids start a word.
VOCABULARY = Vocabulary(
    vocab_size=5000,
    vocab_hash="0" * 64,
    pad_token_id=0,
    cls_token_id=2,
    sep_token_id=3,
    mask_token_id=4,
    start_of_word=np.arange(5000) % 2 == 0,
    end_of_word=np.zeros(5000, bool),
)

# Pieces tell where words end: ids below 5 are special, odd ids end a word.
MARKED_ENDS = dataclasses.replace(
    VOCABULARY, start_of_word=np.arange(5000) < 5, end_of_word=(np.arange(5000) < 5) | (np.arange(5000) % 2 == 1)
)


def options_for(corpus: Path, output_dir: Path, **changes) -> PrepareOptions:
    """Few short examples of a text."""
    settings = {"max_seq_length": 64, "dupe_factor": 2, "num_shards": 3, **changes}
    return PrepareOptions(inputs=(corpus,), output_dir=output_dir, **settings)


def shards_of(folder: Path) -> list[Path]:
    """The files of prepared examples or documents, in order."""
    return sorted(folder.glob("*.tfrecord"))


def rows_of(dataset) -> list[bytes]:
    """Every example as the bytes of its values, in order."""
    rows = []
    for inputs, labels in dataset:
        arrays = [array.numpy() for array in (*inputs.values(), *labels.values())]
        rows += [b"".join(row.tobytes() for row in example) for example in zip(*arrays, strict=True)]
    return rows


def random_documents(seed: int, documents: int = 12, segments: int = 30, longest: int = 25) -> TokenizedDocuments:
    """Documents of 1 up to `segments` segments of 1 up to `longest` tokens; no token occurs twice."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, segments + 1, documents)
    lengths = random.integers(1, longest + 1, counts.sum())
    keys = random.integers(0, 2**63, documents, dtype=np.uint64)
    return TokenizedDocuments.from_lengths(np.arange(lengths.sum(), dtype=np.int32) + 5, lengths, counts, keys)


def random_words(seed: int, rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns starts and content, bool [B, L], of rows laid out as [CLS] a [SEP] b [SEP] padding."""
    random = np.random.default_rng(seed)
    starts, content = np.zeros((2, rows, length), bool)
    for row in range(rows):
        used = random.integers(2, length - 2)
        split = random.integers(1, used)
        content[row, 1 : split + 1] = content[row, split + 2 : used + 2] = True
        starts[row] = content[row] & (random.random(length) < 0.7)
        starts[row, [1, split + 2]] = True
    return starts, content
