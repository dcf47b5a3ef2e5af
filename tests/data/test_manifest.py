"""A manifest is read as it was written, or damage is named; a folder keeps its vocabulary."""

import dataclasses
import json

import numpy as np
import pytest

from albert_tf.data import Manifest, prepare
from albert_tf.data.corpus import Vocabulary
from albert_tf.data.manifest import load_vocabulary, read_tokenizer_files
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


def test_a_folder_holds_its_vocabulary(corpus, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "c")))
    with pytest.warns(UserWarning, match="unknown"):
        folder = prepare(options_for(corpus, tmp_path / "out", tokenizer=vocabulary)).folder
    kept, given = load_vocabulary(folder), Vocabulary.of(AlbertTokenizer.from_pretrained(vocabulary))
    for field in dataclasses.fields(Vocabulary):
        np.testing.assert_array_equal(getattr(kept, field.name), getattr(given, field.name))
    with (folder / "tokenizer/vocab.txt").open("a") as file:
        file.write("\nd")
    for read in (load_vocabulary, read_tokenizer_files):
        with pytest.raises(ValueError, match="was changed after the folder was prepared; restore"):
            read(folder)
