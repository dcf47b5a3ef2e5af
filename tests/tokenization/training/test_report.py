"""Proves the figures of a vocabulary on held-out text against counts by hand."""

from types import SimpleNamespace

import pytest

from albert_tf.tokenization.files import english_model_file
from albert_tf.tokenization.sentencepiece.model import SentencePieceModel
from albert_tf.tokenization.training.report import report_vocabulary


@pytest.mark.parametrize(
    ("lines", "figures"),
    [
        # "▁hello", "▁world" and "▁" and one unknown token for both characters of Hangul.
        (["Hello world", "hello 한글"] * 600, (1200, 1 / 5, 19 / 5)),
        ([], (0, None, None)),
        (["\u0301"], (1, None, None)),  # it becomes no token
    ],
)
def test_unknown_tokens_and_their_length(lines, figures, tmp_path):
    model = SentencePieceModel(english_model_file().read_bytes())
    text = SimpleNamespace(num_lines=3, num_skipped_lines=1, num_training_lines=2, heldout=lines)
    report = report_vocabulary(tmp_path, "unigram", model, text)
    assert (report.num_heldout_lines, report.unknown_rate, report.characters_per_token) == figures
