"""Inputs of multiple-choice questions are those that the reference makes."""

import numpy as np
import pytest

from albert_tf.tasks.multiple_choice.choices import ChoiceQuestion, encode_choices
from tests.toy_task import tokenizer


def test_gaps_are_filled():
    asked = ChoiceQuestion("", "c", "____ stayed, and _ left.", (r"\1", "Bob"), 0)
    assert asked.statements() == [r"\1 stayed, and \1 left.", "Bob stayed, and Bob left."]


def test_inputs_are_the_references():
    """Passage, then question with choice; the passage loses its end, a long question its beginning."""
    context, question = "The old man went to the sea. " * 10, "Where did the old man go after he had eaten _"
    asked = ChoiceQuestion("q", context, question, ("to the sea", "home"), 1)
    encoded = encode_choices(tokenizer(), [asked], max_length=40, max_question_length=8)
    inputs, labels = encoded.training_batch(np.array([0]))
    assert inputs["input_ids"].shape == (1, 2, 40)
    assert labels.tolist() == [1]
    passage = tokenizer().encode(context)
    for row, statement in enumerate(asked.statements()):
        end = tokenizer().encode(statement)[-8:]
        expected = [2, *passage[: 40 - 3 - len(end)], 3, *end, 3]
        assert inputs["input_ids"][0, row].tolist() == expected
        assert inputs["token_type_ids"][0, row].tolist() == [0] * (len(expected) - len(end) - 1) + [1] * (len(end) + 1)


def test_a_length_without_space_is_refused():
    asked = ChoiceQuestion("q", "The old man went to the sea.", "Where? _", ("to the sea", "home"), 1)
    for length in (3, 4):
        with pytest.raises(ValueError, match=f"`max_length` must be at least 5 .* Received: max_length={length}"):
            encode_choices(tokenizer(), [asked], max_length=length)
    inputs, _ = encode_choices(tokenizer(), [asked], max_length=5).training_batch(np.array([0]))
    assert inputs["attention_mask"].sum(axis=-1).tolist() == [[5, 5]]
