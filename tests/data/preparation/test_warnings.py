"""`prepare` warns of texts from which a model would learn little."""

import pytest

from albert_tf.data import PrepareOptions, prepare
from albert_tf.tokenization import AlbertTokenizer

from .test_pipeline import LINES, options_for


def test_texts_that_the_vocabulary_hardly_knows_are_warned_of(tmp_path):
    (tmp_path / "ko.txt").write_text("오늘은 비가 왔다.\n우산이 없었다.\n", encoding="utf-8")
    options = PrepareOptions(inputs=(tmp_path / "ko.txt",), output_dir=tmp_path / "examples", max_seq_length=32)
    with pytest.warns(UserWarning, match=r"\d\d% of the tokens are unknown.*; give"):
        manifest = prepare(options).manifest
    tokenizer = AlbertTokenizer.english()
    ids = [token for line in (tmp_path / "ko.txt").read_text("utf-8").splitlines() for token in tokenizer.encode(line)]
    assert manifest.unknown_tokens == ids.count(tokenizer.unk_token_id) > 0.05 * manifest.tokens == 0.05 * len(ids)


def test_documents_of_one_sentence_are_warned_of(tmp_path):
    """They make no example, which would lose most of a text with a blank line after each sentence in silence."""
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join([*LINES[:3], "\n".join(LINES[3:5])]))
    with pytest.warns(UserWarning, match=r"^3 of 4 documents have a single sentence, .*\(--split-sentences\)"):
        prepare(options_for(text, tmp_path / "examples"))
    prepare(options_for(text, tmp_path / "none", objective="none"))


def test_unrelated_lines_without_blank_ones_between_them_are_warned_of(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("It rained.\nIt stopped.\n" * 500)
    with pytest.warns(UserWarning, match=r"^All 1,000 sentences are a single document, .*\(--objective none\).*gap 0"):
        prepare(options_for(text, tmp_path / "examples", dupe_factor=1))
    for name, changes in (("none", {"objective": "none"}), ("gap", {"document_gap": 0})):
        prepare(options_for(text, tmp_path / name, dupe_factor=1, **changes))
