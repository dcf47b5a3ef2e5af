"""Windows of questions and their labels, compared with those of the reference."""

import numpy as np
import pytest

from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tokenization import AlbertTokenizer
from tests.tasks.question_answering.golden import LAYOUTS, features_of, windows_of


@pytest.mark.parametrize("name", LAYOUTS)
def test_windows_are_the_references(name):
    windows, features = windows_of(name), features_of(name)
    assert len(windows) == len(features)
    for index, feature in enumerate(features):
        batch = windows.batch(np.array([index]), multiple=1)
        assert batch["input_ids"][0].tolist() == feature["input_ids"]
        assert "".join(map(str, batch["token_type_ids"][0])) == feature["segment_ids"]
        assert "".join(map(str, batch["p_mask"][0])) == feature["p_mask"]
        own, best = windows.best_windows(feature["example_index"])
        tokens = slice(windows.start[index], windows.start[index] + windows.count[index])
        is_best = best[tokens] == index - own.start
        assert "".join(map(str, is_best.astype(int))) == feature["token_is_max_context"]
        spans = windows.spans[feature["example_index"]][tokens]
        assert spans[:, 0].tolist() == feature["tok_start_to_orig_index"]
        assert (spans[:, 1] - 1).tolist() == feature["tok_end_to_orig_index"]
    labels = windows.labels()
    for label in ("start_position", "end_position", "is_impossible"):
        found = labels.get(label, labels.get(f"{label}s"))
        np.testing.assert_array_equal(found, [int(feature[label]) for feature in features])


def test_short_windows_overlap_unless_told_otherwise():
    words = [f"w{number}" for number in range(100)]
    context, unlabelled = " ".join(words), []
    questions = [Question(word, "Which?", context, (word,), (context.index(word + " "),)) for word in words[:-1]]
    for options in ({}, {"doc_stride": 128}):
        windows = encode_questions(AlbertTokenizer.english(), questions, max_length=48, **options)
        unlabelled.append(set(range(99)) - set(windows.question[windows.labels()["start_positions"] > 0].tolist()))
    assert not unlabelled[0]
    assert unlabelled[1]  # those that two windows cut


def test_a_passage_in_windows_that_are_too_short():
    questions = [Question("q", "who?", "Jane."), Question("r", "who wrote it?", "Jane.")]
    with pytest.raises(ValueError, match=r"a question of 4 ids, 'who wrote it\?'; lower .* to at most 2\.$"):
        encode_questions(AlbertTokenizer.english(), questions, 6, 1, max_question_length=64)
    assert len(encode_questions(AlbertTokenizer.english(), questions, 6, 1)) > 1
    assert len(encode_questions(AlbertTokenizer.english(), questions, 6, 1, max_question_length=2)) > 1
    long = [Question("q", "who wrote it? " * 30, "Jane.")]
    assert encode_questions(AlbertTokenizer.english(), long, 64).lengths.max() < 64  # half of it is the question's
    with pytest.raises(ValueError, match="`max_length` must be at least 5 for a question and a passage"):
        encode_questions(AlbertTokenizer.english(), questions, 4, 1)
