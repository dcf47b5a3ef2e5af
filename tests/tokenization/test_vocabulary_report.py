"""Proves the figures of a vocabulary on held-out text against counts by hand."""

from albert_tf.tokenization.files import english_model_file
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.training.report import HeldoutFigures, measure_heldout


def test_unknown_tokens_and_the_characters_in_them():
    model = SentencePieceModel(english_model_file().read_bytes())
    # "▁hello", "▁world" and "▁" and one unknown token for both characters of Hangul.
    figures = measure_heldout(model, ["Hello world", "hello 한글"] * 600)
    assert figures == HeldoutFigures(
        num_lines=1200,
        num_characters=1200 * 19 // 2,
        num_tokens=1200 * 5 // 2,
        unknown_rate=1 / 5,
        lost_rate=2 / 19,
        characters_per_token=19 / 5,
    )


def test_nothing_to_measure_gives_no_figures():
    model = SentencePieceModel(english_model_file().read_bytes())
    assert measure_heldout(model, []) is None
    assert measure_heldout(model, ["\u0301"]) is None
