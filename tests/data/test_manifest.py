"""A manifest is read as it was written, or damage is named; a folder keeps its vocabulary."""

import dataclasses
import json
from contextlib import suppress

import numpy as np
import pytest

from albert_tf.data import Manifest, prepare
from albert_tf.data.corpus import Vocabulary
from albert_tf.data.manifest import load_vocabulary
from albert_tf.files.json import with_checksum
from albert_tf.tokenization import AlbertTokenizer
from tests.data.small_corpus import options_for


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"is not a folder of prepared examples: it has no manifest\.json"),
        (b"", r"manifest\.json is not valid JSON"),
        (b"[]", r"manifest\.json holds list where an object is expected"),
        (b"{}", r"manifest\.json has no checksum .* prepare the folder again\."),
        (json.dumps(with_checksum({"recipe": {}})).encode(), r"manifest\.json: recipe\.examples: Field required; prep"),
    ],
)
def test_a_damaged_manifest_is_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Manifest.load(tmp_path)


def test_no_flipped_bit_of_a_manifest_changes_a_value(prepared, tmp_path):
    content = (prepared.folder / "manifest.json").read_bytes()
    taken = []
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 300).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "manifest.json").write_bytes(flipped)
        with suppress(ValueError):
            taken.append(Manifest.load(tmp_path))
    assert len(taken) < 30
    assert all(manifest == prepared.manifest for manifest in taken)  # white space may change


@pytest.mark.parametrize("pieces", [None, ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c")])
def test_a_folder_holds_its_vocabulary(prepared, corpus, tmp_path, pieces):
    folder, tokenizer = prepared.folder, AlbertTokenizer.english()
    if pieces:
        (tmp_path / "vocab.txt").write_text("\n".join(pieces))
        tokenizer = AlbertTokenizer.from_pretrained(tmp_path)
        with pytest.warns(UserWarning, match="unknown"):
            folder = prepare(options_for(corpus, tmp_path / "out", tokenizer=tmp_path)).folder
    kept, given = load_vocabulary(folder), Vocabulary.of(tokenizer)
    for field in dataclasses.fields(Vocabulary):
        np.testing.assert_array_equal(getattr(kept, field.name), getattr(given, field.name))
    assert AlbertTokenizer.from_pretrained(folder / "tokenizer").vocab_hash == given.vocab_hash
