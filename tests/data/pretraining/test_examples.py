"""Examples are laid out as the reference lays them out, and undoing the masks gives back the corpus."""

import dataclasses
import gzip
import json

import numpy as np
import pytest

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.mask_tokens import mask_tokens
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.prng import random_bits
from albert_tf.tokenization import AlbertTokenizer
from tests.data.small_corpus import GOLDEN, VOCABULARY, random_documents


def restored(examples):
    """The ids before masking."""
    ids = examples.input_ids.copy()
    rows, slots = np.nonzero(examples.masked_lm_weights)
    ids[rows, examples.masked_lm_positions[rows, slots]] = examples.masked_lm_ids[rows, slots]
    return ids


@pytest.mark.parametrize("objective", list(Objective))
def test_layout(objective):
    options = ExampleOptions(max_seq_length=48, objective=objective)
    documents = random_documents(11)
    pairs = make_pairs(documents, [0], options)
    examples = make_examples(documents, pairs, options, VOCABULARY)
    for feature in PRETRAINING_FEATURES:
        array = getattr(examples, feature.name)
        assert (array.shape[1:], array.dtype) == (feature.row_shape(options.sizes), feature.dtype)
    for row, ids in enumerate(restored(examples)):
        first = documents.tokens[pairs.first_start[row] :][: pairs.first_length[row]].tolist()
        second = documents.tokens[pairs.second_start[row] :][: pairs.second_length[row]].tolist()
        tokens, types = [2, *first, 3], [0] * (len(first) + 2)
        if objective is not Objective.NONE:
            tokens, types = [*tokens, *second, 3], types + [1] * (len(second) + 1)
        padding = [0] * (48 - len(tokens))
        assert ids.tolist() == tokens + padding
        assert examples.token_type_ids[row].tolist() == types + padding
        assert examples.attention_mask[row].tolist() == [1] * len(tokens) + padding
        boundary = [int(token in (2, 3) or token % 2 == 0) for token in tokens]
        assert examples.token_boundary[row].tolist() == boundary + padding
    assert np.array_equal(examples.sentence_order_labels, pairs.labels)


def test_budget_and_padding_of_predictions():
    options = ExampleOptions(max_seq_length=64, max_predictions_per_seq=7, ngram=1, short_seq_prob=0.5)
    documents = random_documents(12, documents=40, longest=6)
    examples = make_examples(documents, make_pairs(documents, np.arange(4), options), options, VOCABULARY)
    lengths, counts = examples.attention_mask.sum(axis=1), examples.masked_lm_weights.sum(axis=1)
    budgets = np.array([min(7, max(1, round(int(length) * 0.15))) for length in lengths])
    assert set(budgets) == {1, 2, 3, 4, 5, 6, 7}
    # Words of this vocabulary have one or two tokens, so at most one token is left over.
    assert (counts <= budgets).all()
    assert (counts >= budgets - 1).all()
    used = np.arange(7) < counts[:, None]
    assert np.array_equal(examples.masked_lm_weights, used.astype(np.float32))
    assert not examples.masked_lm_positions[~used].any()
    assert not examples.masked_lm_ids[~used].any()
    assert (np.diff(examples.masked_lm_positions, axis=1)[used[:, 1:]] > 0).all()
    special = np.isin(restored(examples), (0, 2, 3))
    assert not np.take_along_axis(special, examples.masked_lm_positions, axis=1)[used].any()


@pytest.mark.parametrize("whole_word_masking", [True, False])
def test_permutation_adds_as_many_tokens_that_only_change_places(whole_word_masking):
    options = ExampleOptions(max_seq_length=64, permutation=True, whole_word_masking=whole_word_masking)
    documents = random_documents(13)
    pairs = make_pairs(documents, [0], options)
    both = make_examples(documents, pairs, options, VOCABULARY)
    masked = make_examples(documents, pairs, options.model_copy(update={"permutation": False}), VOCABULARY)
    assert both.masked_lm_ids.shape[1] == options.sizes["P"] == 2 * masked.masked_lm_ids.shape[1]
    assert np.array_equal(restored(both), restored(masked))
    moved_somewhere = 0
    for row in range(len(both)):
        predicted = set(both.masked_lm_positions[row][both.masked_lm_weights[row] > 0])
        moved = sorted(predicted - set(masked.masked_lm_positions[row][masked.masked_lm_weights[row] > 0]))
        rest = np.setdiff1d(np.arange(64), moved)
        assert np.array_equal(both.input_ids[row, rest], masked.input_ids[row, rest])
        assert sorted(both.input_ids[row, moved]) == sorted(masked.input_ids[row, moved])
        moved_somewhere += len(moved) and not np.array_equal(both.input_ids[row, moved], masked.input_ids[row, moved])
    assert moved_somewhere > 0.9 * len(both)


@pytest.fixture(scope="module")
def golden_instances():
    with gzip.open(GOLDEN / "instances_ngram3.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_reference_instances_are_laid_out_the_same(golden_instances):
    """The reference's own pairs, laid out by us: types, word boundaries, number of masked tokens."""
    tokenizer = AlbertTokenizer.english()
    options = ExampleOptions(max_seq_length=128, max_predictions_per_seq=20)
    id_of = {piece: number for number, piece in enumerate(tokenizer.pieces)}
    original = []
    for instance in golden_instances:
        tokens = [id_of[token] for token in instance["tokens"]]
        for position, label in zip(instance["masked_lm_positions"], instance["masked_lm_labels"], strict=True):
            tokens[position] = id_of[label]
        original.append(tokens)
    lengths = np.array([len(tokens) for tokens in original])
    second_begin = np.array([instance["segment_ids_1_from"] for instance in golden_instances])
    starts = np.cumsum(lengths) - lengths
    pairs = Pairs(
        passes=np.zeros(len(lengths), int),
        keys=np.arange(len(lengths), dtype=np.uint64),
        first_start=starts + 1,
        first_length=second_begin - 2,
        second_start=starts + second_begin,
        second_length=lengths - second_begin - 1,
        labels=np.array([int(instance["is_random_next"]) for instance in golden_instances]),
    )
    flat = random_documents(0, documents=1, segments=1)
    documents = type(flat)(np.concatenate(original).astype(np.int32), *list(vars(flat).values())[1:])
    examples = make_examples(documents, pairs, options, Vocabulary.of(tokenizer))
    for row, instance in enumerate(golden_instances):
        length = lengths[row]
        assert restored(examples)[row, :length].tolist() == original[row]
        assert examples.attention_mask[row].tolist() == [1] * length + [0] * (128 - length)
        assert examples.token_type_ids[row, :length].sum() == length - second_begin[row]
        assert "".join(map(str, examples.token_boundary[row, :length])) == instance["token_boundary"]
        assert abs(examples.masked_lm_weights[row].sum() - len(instance["masked_lm_positions"])) <= 1


def test_shards_of_more_than_two_to_the_31_tokens():
    """Ten thousand million tokens of which memory holds one: positions need 64 bits."""
    lengths = np.full(10, 10**9, np.int32)
    tokens = np.broadcast_to(np.int32(8), lengths.sum(dtype=np.int64))
    documents = TokenizedDocuments.from_lengths(tokens, lengths, [2] * 5, np.arange(5))
    options = ExampleOptions(max_seq_length=32)
    pairs = make_pairs(documents, [0], options)
    assert pairs.first_start.max() > 2**31
    examples = make_examples(documents, pairs, options, VOCABULARY)
    assert len(examples) == 5
    assert (examples.attention_mask.sum(axis=1) == 32).all()
    assert set(examples.masked_lm_ids[examples.masked_lm_weights > 0]) == {8}


@pytest.mark.parametrize("changed", [{}, {"whole_word_masking": False}, {"masked_lm_prob": 0.4, "ngram": 1}], ids=str)
def test_a_tokenized_batch_is_masked_as_examples_are(changed):
    options = ExampleOptions(max_seq_length=48, **changed)
    documents = random_documents(11)
    pairs = make_pairs(documents, [0], options)
    keys = random_bits(3, np.arange(len(pairs)))
    expected = make_examples(documents, dataclasses.replace(pairs, keys=keys), options, VOCABULARY)
    inputs = {
        "input_ids": restored(expected),
        "attention_mask": expected.attention_mask,
        "token_type_ids": expected.token_type_ids,
    }
    masked, labels = mask_tokens(inputs, VOCABULARY, seed=3, **changed)
    for name, array in {**masked, **labels}.items():
        np.testing.assert_array_equal(array, getattr(expected, name))
    assert len(masked) + len(labels) == 6
    assert (mask_tokens(inputs, VOCABULARY, seed=4, **changed)[0]["input_ids"] != masked["input_ids"]).any()


def test_masking_without_tokens():
    tokenizer = AlbertTokenizer.english()
    _, labels = mask_tokens(tokenizer(["", "a"]), tokenizer, seed=0)
    assert labels["masked_lm_weights"].sum() == 1
    with pytest.raises(ValueError, match="masked_lm_prob"):
        mask_tokens(tokenizer(["a"]), tokenizer, seed=0, masked_lm_prob=2)
