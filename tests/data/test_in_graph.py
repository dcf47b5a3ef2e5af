"""Examples made by TensorFlow operations equal those made by NumPy bit for bit, for every objective and switch."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.data import draws
from albert_tf.data.examples import make_examples
from albert_tf.data.in_graph import draws as graph_draws
from albert_tf.data.in_graph import examples as graph_examples
from albert_tf.data.in_graph import pairs as graph_pairs
from albert_tf.data.options import ExampleOptions
from albert_tf.data.pairs import make_pairs

from .small_corpus import MARKED_ENDS, VOCABULARY, random_documents

KEYS = draws.draw(np.uint64(5), np.arange(2000))
CASES = {
    "defaults": {},
    "reference": {"reference_pairs": True, "permutation": True, "max_predictions_per_seq": 5},
    "next_sentence": {"objective": "next_sentence", "ngram": 1},
    "random_next_sentence": {"objective": "next_sentence", "reference_pairs": True, "whole_word_masking": False},
    "marked_ends": {},
    "none": {"objective": "none", "favor_shorter_ngram": False, "permutation": True, "masked_lm_prob": 0.3},
}


def corpus():
    """Two hundred documents, with segments that do not fit an example and documents of one segment."""
    documents = random_documents(1, documents=200, longest=90)
    return dataclasses.replace(documents, tokens=documents.tokens % 4995 + 5)


def test_draws_are_equal():
    bits, values = tf.constant(KEYS), tf.range(2000, dtype=tf.int64)
    drawn = draws.draw(KEYS, np.arange(2000))
    for ours, theirs in [
        (graph_draws.mix(bits), draws.mix(KEYS)),
        (graph_draws.draw(bits, values), drawn),
        (graph_draws.child_keys(bits[:, None], values[:7]), draws.child_keys(KEYS[:, None], np.arange(7))),
        (graph_draws.below(drawn, values + 1), draws.below(drawn, np.arange(1, 2001))),
        (graph_draws.below_low(drawn, 30_000), draws.below_low(drawn, 30_000)),
        (graph_draws.happens(drawn, 0.1), draws.happens(drawn, 0.1)),
        (graph_draws.from_sortable(tf.sort(graph_draws.sortable(bits))), np.sort(KEYS)),
    ]:
        assert np.array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize("case", CASES)
def test_thousands_of_examples_are_equal(case):
    options = ExampleOptions(**{"max_seq_length": 64, "short_seq_prob": 0.3, **CASES[case]})
    vocabulary = MARKED_ENDS if case == "marked_ends" else VOCABULARY
    documents = corpus()
    tensors = graph_pairs.GraphDocuments(*(tf.constant(array) for array in vars(documents).values()))

    @tf.function
    def in_graph(pass_number):
        pairs = graph_pairs.make_pairs(tensors, pass_number, options)
        rows = graph_examples.lay_out(tensors, pairs, options, vocabulary)
        return pairs, graph_examples.make_examples(rows, options, vocabulary)

    for pass_number in (0, 11):
        pairs = make_pairs(documents, [pass_number], options).shuffled()
        graph, batch = in_graph(tf.constant(pass_number, tf.int64))
        for name, tensor in graph._asdict().items():
            assert np.array_equal(tensor.numpy(), getattr(pairs, name)), name
        examples = make_examples(documents, pairs, options, vocabulary)
        assert len(examples) > 1500
        for name, tensor in batch.items():
            expected = getattr(examples, name)
            assert tensor.dtype.name == expected.dtype.name
            assert np.array_equal(tensor.numpy(), expected), name
