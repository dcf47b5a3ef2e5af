"""Pairs of all documents at once equal the rule written for one document in plain Python, and have its properties."""

import numpy as np
import pytest

from albert_tf.data.corpus import TokenizedDocuments
from albert_tf.data.options import ExampleOptions, Objective
from albert_tf.data.pretraining.pairs import make_pairs
from albert_tf.data.prng import bernoulli, fold_in, random_bits, splitmix64, uniform_int, uniform_int_low
from tests.data.small_corpus import random_documents

MODES = [
    (Objective.SENTENCE_ORDER, False),
    (Objective.SENTENCE_ORDER, True),
    (Objective.NEXT_SENTENCE, False),
    (Objective.NEXT_SENTENCE, True),
    (Objective.NONE, False),
]


def options_for(objective=Objective.SENTENCE_ORDER, reference_pairs=False, **changes):
    settings = {"max_seq_length": 64, "short_seq_prob": 0.3, "seed": 5, **changes}
    return ExampleOptions(objective=objective, reference_pairs=reference_pairs, **settings)


def spans(pairs):
    """Each example as (key, first start, first stop, second start, second stop, label)."""
    rows = zip(
        *(pairs.keys, pairs.first_start, pairs.first_start + pairs.first_length),
        *(pairs.second_start, pairs.second_start + pairs.second_length, pairs.labels),
        strict=True,
    )
    return sorted(tuple(map(int, row)) for row in rows)


def truncate_plainly(first, second, room, key):
    """Shortens the longer one token by token, the second where both are equal; the draw says how many at the front."""
    lengths, cuts = [first[1] - first[0], second[1] - second[0]], [0, 0]
    while sum(lengths) > room:
        longer = 0 if lengths[0] > lengths[1] else 1
        lengths[longer] -= 1
        cuts[longer] += 1
    bits = random_bits(key, 4)
    fronts = int(uniform_int(bits, cuts[0] + 1)), int(uniform_int_low(bits, cuts[1] + 1))
    spans = zip((first, second), fronts, cuts)
    return [(start + front, stop - (tokens - front)) for (start, stop), front, tokens in spans]


def accumulate(lengths, start, target):
    """Returns the number of segments from `start` on that reach `target` tokens, or that are left."""
    end, total = start, 0
    while end < len(lengths) and (total < target or end == start):
        total += lengths[end]
        end += 1
    return end


def pairs_of_one_document(documents, number, pass_number, options):
    """The rule for one pass over one document; yields what `spans` returns."""
    offsets = documents.segment_offsets
    first, stop = documents.document_offsets[number : number + 2]
    lengths = np.diff(offsets)[first:stop]
    key = fold_in(fold_in(splitmix64(options.seed), documents.document_keys[number]), pass_number)
    bits = random_bits(key, 0)
    target = options.max_tokens
    if bernoulli(bits, options.short_seq_prob):
        target = 2 + int(uniform_int_low(bits, options.max_tokens - 1))
    cursor = step = 0
    while cursor < len(lengths):
        example_key = fold_in(key, step)
        step += 1
        begin, end = cursor, accumulate(lengths, cursor, target)
        plain = options.reference_pairs or options.objective is Objective.NONE
        if not plain and end - begin == 1:
            end = min(end + 1, len(lengths))
            begin = end - 2
        if begin < 0:
            return
        middle = begin + 1 + (int(uniform_int(random_bits(example_key, 1), end - begin - 1)) if end - begin > 1 else 0)
        coin = bool(bernoulli(random_bits(example_key, 2), 0.5))
        if options.objective is Objective.NONE:
            middle, coin = end, False
        a, b = (offsets[first + begin], offsets[first + middle]), (offsets[first + middle], offsets[first + end])
        following, label = end, coin
        if (options.reference_pairs and end - begin == 1) or (coin and options.objective is Objective.NEXT_SENTENCE):
            other = int(uniform_int(random_bits(example_key, 3), len(documents) - 1))
            other += other >= number
            other_first, other_stop = documents.document_offsets[other : other + 2]
            b_begin = int(uniform_int_low(random_bits(example_key, 3), other_stop - other_first))
            b_end = accumulate(np.diff(offsets)[other_first:other_stop], b_begin, target - (a[1] - a[0]))
            b = offsets[other_first + b_begin], offsets[other_first + b_end]
            following, label = max(middle, cursor + 1), True
        elif coin:
            a, b = b, a
        a, b = truncate_plainly(a, b, options.max_tokens, example_key)
        yield (int(example_key), int(a[0]), int(a[1]), int(b[0]), int(b[1]), int(label))
        cursor = following


@pytest.mark.parametrize(("objective", "reference_pairs"), MODES)
@pytest.mark.parametrize("longest", [8, 90])  # segments far below, and some above, the 61 tokens that fit
def test_equals_the_rule_for_one_document(objective, reference_pairs, longest):
    documents = random_documents(longest, documents=40, longest=longest)
    options = options_for(objective, reference_pairs)
    assert 1 in np.diff(documents.document_offsets)  # a document of a single segment
    expected = [
        pair
        for number in range(len(documents))
        for pass_number in (0, 3)
        for pair in pairs_of_one_document(documents, number, pass_number, options)
    ]
    assert spans(make_pairs(documents, [0, 3], options)) == sorted(expected)


@pytest.mark.parametrize("objective", [Objective.SENTENCE_ORDER, Objective.NONE])
def test_no_segment_is_left_out(objective):
    documents, options = random_documents(2, segments=4), options_for(objective, max_seq_length=2**12, short_seq_prob=0)
    pairs = make_pairs(documents, [0], options)
    used = np.zeros(len(documents.tokens), int)
    for _, first, first_stop, second, second_stop, _ in spans(pairs):
        used[first:first_stop] += 1
        used[second:second_stop] += 1
    alone = np.flatnonzero(np.diff(documents.document_offsets) == 1)
    assert alone.size
    for document in range(len(documents)):
        first, stop = documents.segment_offsets[documents.document_offsets[document : document + 2]]
        # A document with one segment has no pair, but is text to predict words in.
        assert (used[first:stop] == (0 if document in alone and objective is not Objective.NONE else 1)).all()


@pytest.mark.parametrize("objective", [Objective.SENTENCE_ORDER, Objective.NEXT_SENTENCE])
def test_a_document_of_one_segment_makes_no_example_and_half_are_negative_without_it(objective):
    segments = np.tile([1, 6], 200)
    lengths = np.full(segments.sum(), 9)
    keys = splitmix64(np.arange(400, dtype=np.uint64))
    documents = TokenizedDocuments.from_lengths(np.arange(lengths.sum(), dtype=np.int32), lengths, segments, keys)
    pairs = make_pairs(documents, np.arange(4), options_for(objective))
    home = np.searchsorted(documents.segment_offsets[documents.document_offsets], pairs.first_start, side="right") - 1
    assert set(segments[home]) == {6}
    assert abs(pairs.labels.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(pairs))


def test_another_seed_or_pass_makes_other_pairs():
    documents = random_documents(6)
    runs = [make_pairs(documents, [number], options_for(seed=seed)) for number in (0, 1) for seed in (1, 2)]
    keys = np.concatenate([pairs.keys for pairs in runs])
    assert len(np.unique(keys)) == len(keys)


def test_shuffling_keeps_passes_together_and_mixes_documents():
    documents = random_documents(8)
    pairs = make_pairs(documents, [1, 0], options_for())
    shuffled = pairs.shuffled()
    assert spans(shuffled) == spans(pairs)
    assert (np.diff(shuffled.passes) >= 0).all()
    first_pass = shuffled.take(shuffled.passes == 0)
    assert abs(np.corrcoef(np.arange(len(first_pass)), first_pass.first_start)[0, 1]) < 0.5


def test_without_partners_there_are_no_pairs():
    assert len(make_pairs(random_documents(1, documents=3, segments=1), [0], options_for())) == 0
    with pytest.raises(ValueError, match="at least two documents"):
        make_pairs(random_documents(1, documents=1), [0], options_for(Objective.NEXT_SENTENCE))
