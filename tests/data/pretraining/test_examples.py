"""Examples are laid out as the reference lays them out, undone masks give back the corpus, and statistics are equal."""

import dataclasses
import gzip
import json
from collections import Counter

import numpy as np
import pytest

from albert_tf.data.corpus import TokenizedDocuments, Vocabulary
from albert_tf.data.documents import read_documents
from albert_tf.data.features import PRETRAINING_FEATURES
from albert_tf.data.manifest import ExampleStatistics
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.preparation.tokenized_cache import tokenize_documents
from albert_tf.data.pretraining.examples import make_examples
from albert_tf.data.pretraining.mask_tokens import mask_tokens
from albert_tf.data.pretraining.pairs import Pairs, make_pairs
from albert_tf.data.prng import random_bits
from tests.data.small_corpus import CORPUS, GOLDEN, VOCABULARY, random_documents
from tests.toy_task import tokenizer


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


def golden_instances(name):
    with gzip.open(GOLDEN / f"instances_{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def test_reference_instances_are_laid_out_the_same():
    """The reference's own pairs, laid out by us: types, word boundaries, number of masked tokens."""
    vocabulary, instances = tokenizer(), golden_instances("ngram3")
    options = ExampleOptions(max_seq_length=128, max_predictions_per_seq=20)
    id_of = {piece: number for number, piece in enumerate(vocabulary.pieces)}
    original = []
    for instance in instances:
        tokens = [id_of[token] for token in instance["tokens"]]
        for position, label in zip(instance["masked_lm_positions"], instance["masked_lm_labels"], strict=True):
            tokens[position] = id_of[label]
        original.append(tokens)
    lengths = np.array([len(tokens) for tokens in original])
    second_begin = np.array([instance["segment_ids_1_from"] for instance in instances])
    starts = np.cumsum(lengths) - lengths
    pairs = Pairs(
        passes=np.zeros(len(lengths), int),
        keys=np.arange(len(lengths), dtype=np.uint64),
        first_start=starts + 1,
        first_length=second_begin - 2,
        second_start=starts + second_begin,
        second_length=lengths - second_begin - 1,
        labels=np.array([int(instance["is_random_next"]) for instance in instances]),
    )
    flat = random_documents(0, documents=1, segments=1)
    documents = type(flat)(np.concatenate(original).astype(np.int32), *list(vars(flat).values())[1:])
    examples = make_examples(documents, pairs, options, Vocabulary.of(vocabulary))
    before = restored(examples)
    for row, instance in enumerate(instances):
        length = lengths[row]
        assert before[row, :length].tolist() == original[row]
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
    _, labels = mask_tokens(tokenizer()(["", "a"]), tokenizer(), seed=0)
    assert labels["masked_lm_weights"].sum() == 1
    with pytest.raises(ValueError, match="masked_lm_prob"):
        mask_tokens(tokenizer()(["a"]), tokenizer(), seed=0, masked_lm_prob=2)


# === Statistics ===
# A target length is drawn once for each pass over a document and a short one makes hundreds of short examples, so means
# over the 42 passes behind the golden statistics scatter widely. Hence: full passes are compared exactly, means
# with the scatter of such samples, and what happens inside examples among examples of the same lengths.

GOLDEN_STATISTICS = json.loads((GOLDEN / "statistics.json").read_text())["statistics"]
CASES = {"ngram1": (1, True), "ngram3_favor_shorter": (3, True), "ngram3_favor_longer": (3, False)}


@pytest.fixture(scope="module")
def documents():
    return tokenize_documents(list(read_documents(CORPUS)), tokenizer())


def options_for(**changes):
    return ExampleOptions(
        **{"max_seq_length": 128, "max_predictions_per_seq": 20, "reference_pairs": True, "seed": 1, **changes}
    )


def lengths_of(pairs):
    return pairs.first_length + pairs.second_length + 3


def rows_with_histogram(lengths, histogram):
    """Returns the first rows whose lengths have the histogram, in steps of 8, that is asked for."""
    rows = [
        np.flatnonzero(np.minimum(lengths, 127) // 8 == int(start) // 8)[:count] for start, count in histogram.items()
    ]
    return np.sort(np.concatenate(rows))


def share_error(share, ours, theirs):
    """Four standard errors of the difference of two observed shares."""
    return 4 * np.sqrt(share * (1 - share) * (1 / ours + 1 / theirs))


def word_runs(examples):
    """Lengths of maximal runs of neighbouring masked words, as the reference's statistics count them."""
    runs = Counter()
    for row in range(len(examples)):
        length = examples.attention_mask[row].sum()
        positions = examples.masked_lm_positions[row][examples.masked_lm_weights[row] > 0]
        masked = np.isin(np.arange(length), positions)
        special = np.isin(np.arange(length), [0, length - 1, np.argmax(examples.token_type_ids[row]) - 1])
        starts = (examples.token_boundary[row, :length] == 1)[~special]
        starts[0] = True
        whole_words = np.logical_and.reduceat(masked[~special], np.flatnonzero(starts))
        edges = np.flatnonzero(np.diff(np.concatenate([[0], whole_words, [0]])))
        runs.update((edges[1::2] - edges[::2]).tolist())
    return runs


def test_full_passes_are_cut_into_the_same_chunks(documents):
    golden = golden_instances("no_wwm")  # one pass over three documents, none of them a short one
    pairs = make_pairs(documents, [0], options_for(short_seq_prob=0))
    assert len(pairs) == len(golden)
    # Only the random partners of lone segments at the end of a document differ in length.
    assert Counter((lengths_of(pairs) // 8).tolist()) == Counter(len(example["tokens"]) // 8 for example in golden)


def test_numbers_lengths_and_labels_scatter_around_the_references(documents):
    golden = GOLDEN_STATISTICS["ngram1"]
    pairs = make_pairs(documents, np.arange(14 * 100), options_for())
    samples = [pairs.take(pairs.passes // 14 == sample) for sample in range(100)]
    for key, values in {
        "instances": [len(sample) for sample in samples],
        "length_mean": [lengths_of(sample).mean() for sample in samples],
        "length_std": [lengths_of(sample).std() for sample in samples],
        "share_of_full_length": [(lengths_of(sample) >= 128).mean() for sample in samples],
        "label_1_share": [sample.labels.mean() for sample in samples],
        "segment_a_length_mean": [sample.first_length.mean() for sample in samples],
        "segment_b_length_mean": [sample.second_length.mean() for sample in samples],
    }.items():
        assert abs(np.mean(values) - golden[key]) < 4 * np.std(values), key


@pytest.mark.parametrize("case", CASES)
def test_masks_are_the_references(case, documents):
    ngram, favor_shorter = CASES[case]
    golden = GOLDEN_STATISTICS[case]
    options, vocabulary = options_for(ngram=ngram, favor_shorter_ngram=favor_shorter), Vocabulary.of(tokenizer())
    pairs = make_pairs(documents, np.arange(150), options)
    rows = rows_with_histogram(lengths_of(pairs), golden["length_histogram"])
    assert len(rows) == golden["instances"]
    examples = make_examples(documents, pairs.take(rows), options, vocabulary)
    ours = ExampleStatistics.of(examples, vocabulary)

    assert ours.masked / ours.examples == pytest.approx(golden["masked_per_instance_mean"], rel=0.003)
    for share, key in [
        (ours.masked_as_mask / ours.masked, "mask_token_share"),
        (ours.masked_as_kept / ours.masked, "keep_share"),
        (ours.masked_as_random / ours.masked, "random_share"),
    ]:
        assert abs(share - golden[key]) < share_error(golden[key], ours.masked, golden["masked_total"])

    runs, golden_runs = word_runs(examples), golden["masked_word_run_lengths"]
    ours_total, golden_total = runs.total(), sum(golden_runs.values())
    for length in (1, 2, 3, 4):
        share = golden_runs[str(length)] / golden_total
        assert abs(runs[length] / ours_total - share) < share_error(share, ours_total, golden_total), length


def test_next_sentence_labels_are_the_references(documents):
    golden = np.array([example["is_random_next"] for example in golden_instances("random_next")])
    pairs = make_pairs(documents, np.arange(10), options_for(objective=Objective.NEXT_SENTENCE, short_seq_prob=0))
    share = golden.mean()
    assert abs(pairs.labels.mean() - share) < share_error(share, len(pairs), len(golden))


def test_our_own_pairs_are_as_full(documents):
    ours = make_pairs(documents, np.arange(14), options_for(reference_pairs=False, short_seq_prob=0))
    theirs = make_pairs(documents, np.arange(14), options_for(short_seq_prob=0))
    assert lengths_of(ours).mean() == pytest.approx(lengths_of(theirs).mean(), rel=0.01)


def like_golden(name, documents, vocabulary, **changes):
    """Examples of the lengths that the golden ones have, and those."""
    golden = golden_instances(name)
    histogram = Counter(8 * (min(len(instance["tokens"]), 127) // 8) for instance in golden)
    options = options_for(**changes)
    pairs = make_pairs(documents, np.arange(60), options)
    rows = rows_with_histogram(lengths_of(pairs), histogram)
    assert len(rows) == len(golden)
    return make_examples(documents, pairs.take(rows), options, vocabulary), golden


def test_permutations_are_the_references(documents):
    vocabulary = Vocabulary.of(tokenizer())
    examples, golden = like_golden("permutation", documents, vocabulary, permutation=True)
    ours = ExampleStatistics.of(examples, vocabulary)
    pairs_of_tokens = [
        (instance["tokens"][position], label)
        for instance in golden
        for position, label in zip(instance["masked_lm_positions"], instance["masked_lm_labels"], strict=True)
    ]
    assert ours.masked / ours.examples == pytest.approx(len(pairs_of_tokens) / len(golden), rel=0.003)
    for count, theirs in [
        (ours.masked_as_mask, sum(token == "[MASK]" for token, _ in pairs_of_tokens)),
        (ours.masked_as_kept, sum(token == label for token, label in pairs_of_tokens)),
    ]:
        share = theirs / len(pairs_of_tokens)
        assert abs(count / ours.masked - share) < share_error(share, ours.masked, len(pairs_of_tokens))


def test_masks_of_single_tokens_are_the_references(documents):
    """Without whole words a budget is always met, and tokens inside words are masked without their beginning."""
    vocabulary = Vocabulary.of(tokenizer())
    examples, golden = like_golden("no_wwm", documents, vocabulary, whole_word_masking=False)
    masked = np.zeros(examples.input_ids.shape, bool)
    rows, slots = np.nonzero(examples.masked_lm_weights)
    masked[rows, examples.masked_lm_positions[rows, slots]] = True
    golden_total = sum(len(instance["masked_lm_positions"]) for instance in golden)
    assert masked.sum() / len(examples) == pytest.approx(golden_total / len(golden), rel=0.003)
    inside = (examples.token_boundary == 0) & (examples.attention_mask == 1)  # tokens that do not start a word
    broken = (masked[:, 1:] & inside[:, 1:] & ~masked[:, :-1]).sum()
    golden_inside = sum(instance["token_boundary"].count("0") for instance in golden)
    golden_broken = sum(
        instance["token_boundary"][position] == "0" and position - 1 not in instance["masked_lm_positions"]
        for instance in golden
        for position in instance["masked_lm_positions"]
    )
    share = golden_broken / golden_inside
    assert share > 0.05
    assert abs(broken / inside.sum() - share) < share_error(share, inside.sum(), golden_inside)
