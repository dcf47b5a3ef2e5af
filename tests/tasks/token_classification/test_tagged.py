"""Labels of the tokens of tagged texts, and windows of long texts."""

import numpy as np
import pytest

from albert_tf.tasks.token_classification.tagged import TaggedText, encode_tagged, first_tokens, tag_names
from tests.toy_task import tokenizer


def test_names_of_tags():
    words = TaggedText("", "a b c", ((0, 1), (2, 3), (4, 5)), ("O", "B-Y", "I-X"))
    spans = TaggedText("", "ab", spans=((0, 1, "PER"), (1, 2, "LOC")))
    assert tag_names([words]) == ("O", "B-Y", "I-X")
    assert tag_names([spans]) == ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")


def test_first_tokens_carry_the_tags_of_words():
    text = TaggedText("here", "Blackburn \u0301 saw", ((0, 9), (10, 11), (12, 15)), ("B-PER", "O", "O"))
    encoded = encode_tagged(tokenizer(), [text], ["O", "B-PER"])
    first = first_tokens(text, encoded.spans[0])
    assert first[1] is None  # a lone accent has no token
    labels = encoded.labels[0]
    assert labels[first[0]] == 1
    assert labels[first[2]] == 0
    assert (labels == -100).sum() == len(labels) - 2
    _, batch = encoded.training_batch(np.array([0]))
    np.testing.assert_array_equal(batch[0, 1 : 1 + len(labels)], labels)
    assert (np.delete(batch[0], np.arange(1, 1 + len(labels))) == -100).all()


def test_tokens_without_characters_begin_no_word():
    text = TaggedText("", "a bc d", ((0, 1), (2, 4), (5, 6)))
    spans = np.array([[0, 0], [0, 1], [2, 2], [2, 3], [3, 4], [5, 5]], np.int32)
    assert first_tokens(text, spans) == [1, 3, None]


def test_every_token_of_a_span_is_labelled():
    text = TaggedText("here", "Mr. Blackburn saw it", spans=((4, 13, "PER"),))
    names = tag_names([text])
    encoded = encode_tagged(tokenizer(), [text], names)
    tags = [names[label] for label in encoded.labels[0]]
    inside = [(start < 13 and end > 4) for start, end in encoded.spans[0].tolist()]
    expected = np.where(inside, "I-PER", "O").tolist()
    expected[inside.index(True)] = "B-PER"
    assert tags == expected


def test_an_unknown_tag_is_named():
    text = TaggedText("a.conll, line 7", "a", ((0, 1),), ("B-PRE",))
    with pytest.raises(ValueError, match=r"a\.conll, line 7: the tag 'B-PRE' is not one of 'O', 'B-PER'; did you mean"):
        encode_tagged(tokenizer(), [text], ["O", "B-PER"])


def test_windows_of_a_long_text_are_joined():
    words = [f"word{number}" for number in range(60)]
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    places = tuple((int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True))
    texts = [TaggedText("a", " ".join(words), places, ("O",) * 60), TaggedText("b", "one", ((0, 3),), ("O",))]
    encoded = encode_tagged(tokenizer(), texts, ["O", "B-X"], max_length=32, doc_stride=10)
    assert len(encoded.text) > 5
    numbers = [np.arange(start, start + count) for start, count in zip(encoded.start, encoded.count, strict=True)]
    joined = encoded.join(numbers)
    for spans, tokens in zip(encoded.spans, joined, strict=True):
        np.testing.assert_array_equal(tokens, np.arange(len(spans)))
