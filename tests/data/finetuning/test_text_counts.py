"""Proves that texts that are cut, and texts without tokens, are counted exactly and reported once."""

import warnings

import numpy as np
import pytest

from albert_tf.data.finetuning.encoded import encode_texts
from albert_tf.data.finetuning.text_counts import count_texts, report_together
from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, encode_choices
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tasks.token_classification.tagged import OUTSIDE, TaggedText, encode_tagged
from tests.toy_task import tokenizer

WORD = "man "  # one token
LENGTHS = (1, 6, 7, 0, 8)  # of which those above 6 do not fit into 8 tokens with [CLS] and [SEP]


def texts_of(lengths):
    return [WORD * length for length in lengths]


def counted(encode, *arguments, **options):
    with count_texts() as counts:
        encode(tokenizer(), *arguments, **options)
    return counts.total, counts.cut, counts.empty


def test_texts_that_just_fit_are_not_cut():
    assert counted(encode_texts, texts_of(LENGTHS), None, 8) == (5, 2, 1)
    assert counted(encode_texts, texts_of(LENGTHS), None, 10) == (5, 0, 1)
    assert counted(encode_texts, ["", " \u3000", "\u200d"], None, 8) == (3, 0, 3)


def test_pairs_are_counted_by_what_both_have():
    firsts, seconds = (2, 2, 2, 9, 0), (3, 4, 0, 0, 5)  # of which 5 fit
    assert counted(encode_texts, texts_of(firsts), texts_of(seconds), 8) == (5, 2, 3)


def test_windows_leave_nothing_out():
    with count_texts() as counts:
        encoded = encode_texts(tokenizer(), texts_of(LENGTHS), None, 8, windows=True, doc_stride=2)
    assert (counts.total, counts.cut, counts.empty) == (5, 0, 1)
    assert encoded.text.tolist() == [0, 1, 2, 2, 3, 4, 4]
    expected = tokenizer()(texts_of(LENGTHS), max_length=8, doc_stride=2)
    batch = encoded.batch(np.arange(7))
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        np.testing.assert_array_equal(batch[name], expected[name], err_msg=name)


def test_counts_of_several_parts_are_added():
    assert counted(encode_texts, texts_of(LENGTHS) * 500, None, 8) == (2500, 1000, 500)


def test_questions_choices_and_tags():
    questions = [Question(str(number), text, "the old man") for number, text in enumerate(texts_of((3, 4, 5)))]
    assert counted(encode_questions, questions, 16, max_question_length=4) == (3, 1, 0)
    choices = [ChoiceQuestion("", WORD * context, "_", tuple(texts_of(row)), 0) for context, row in CHOICES]
    assert counted(encode_choices, choices, 12, 4) == (5, 2, 1)
    tagged = [TaggedText("", text) for text in texts_of((40, 0, 2))]
    assert counted(encode_tagged, tagged, (OUTSIDE,), 8) == (3, 0, 1)


# Tokens of passages, and of their choices: 12 tokens with three special ones, of which a choice has 4.
CHOICES = [(5, (4, 3)), (6, (4, 3)), (5, (5, 1)), (0, (1, 1)), (1, (1, 0))]


def test_without_a_context_that_counts_there_is_one_warning():
    with pytest.warns(UserWarning, match="of 5 texts") as caught:
        encode_texts(tokenizer(), texts_of(LENGTHS), None, 8)
    assert [str(one.message).partition(" tokens")[0] for one in caught] == [
        "2 of 5 texts did not fit into 8",
        "1 of 5 texts had no",
    ]
    with warnings.catch_warnings(action="error"):
        encode_texts(tokenizer(), texts_of((1, 6)), None, 8)


def test_contexts_may_be_within_each_other():
    @report_together()
    def encode_twice():
        encode_texts(tokenizer(), texts_of(LENGTHS), None, 8)
        encode_texts(tokenizer(), texts_of(LENGTHS), None, 9)

    with count_texts() as outer:
        encode_twice()
    assert (outer.total, outer.cut, outer.empty) == (10, 3, 2)
    with pytest.warns(UserWarning, match=r"^3 of 10 texts did not fit into 9 tokens") as caught:
        encode_twice()
    assert len(caught) == 2
