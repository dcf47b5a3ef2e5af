"""Windows and answers of questions, compared with those of the reference (golden cases Q1 and Q2)."""

import functools
import gzip
import json

import numpy as np
import pytest

from albert_tf.metrics import squad2_scores, squad_scores
from albert_tf.tasks.question_answering.answers import SpanScores, apply_threshold, find_answers
from albert_tf.tasks.question_answering.files import read_questions
from albert_tf.tasks.question_answering.questions import Question, encode_questions
from albert_tf.tokenization import AlbertTokenizer
from tests.conftest import ROOT

FEATURES, PREDICTIONS = (ROOT / "tests/golden" / name for name in ("Q1_squad_features", "Q2_squad_postprocessing"))
LAYOUTS = {"squad_v2": (384, 128, 64), "xquad_en": (384, 128, 64), "squad_v2_short": (128, 48, 12)}


def read_json(path):
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)


@functools.cache
def golden_questions(name, folder):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(read_json(FEATURES / f"{name}.json.gz")), encoding="utf-8")
    return read_questions(path)


@functools.cache
def golden_features(name):
    with gzip.open(FEATURES / f"{name}.features.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("questions")


@functools.cache
def windows_of(name, folder):
    return encode_questions(AlbertTokenizer.english(), golden_questions(name, folder), *LAYOUTS[name])


def test_short_windows_overlap_unless_told_otherwise():
    words = [f"w{number}" for number in range(100)]
    context, tokenizer = " ".join(words), AlbertTokenizer.english()
    questions = [Question(word, "Which?", context, (word,), (context.index(word + " "),)) for word in words[:-1]]
    unlabelled = [
        {windows.questions[index].id for index in windows.question} - answered
        for windows in (
            encode_questions(tokenizer, questions, max_length=48),
            encode_questions(tokenizer, questions, max_length=48, doc_stride=128),
        )
        for answered in [{questions[index].id for index in windows.question[windows.labels()["start_positions"] > 0]}]
    ]
    assert not unlabelled[0]
    assert unlabelled[1]  # those that two windows cut


@pytest.mark.parametrize("name", LAYOUTS)
def test_windows_are_the_references(name, folder):
    windows, features = windows_of(name, folder), golden_features(name)
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


@pytest.mark.parametrize("name", LAYOUTS)
def test_labels_are_the_references(name, folder):
    labels, features = windows_of(name, folder).labels(), golden_features(name)
    for label in ("start_position", "end_position", "is_impossible"):
        found = labels.get(label, labels.get(f"{label}s"))
        np.testing.assert_array_equal(found, [int(feature[label]) for feature in features])


def scores_of(name):
    with np.load(PREDICTIONS / name) as arrays:
        arrays = dict(arrays)
    return {name: array for name, array in arrays.items() if name != "unique_ids"}


def assert_candidates(answers, expected):
    assert list(answers) == list(expected)
    for question, candidates in expected.items():
        found = answers[question].candidates
        assert [candidate.text for candidate in found] == [candidate["text"] for candidate in candidates]
        for name, field in (("probability",) * 2, ("start_log_prob", "start_score"), ("end_log_prob", "end_score")):
            np.testing.assert_allclose(
                [getattr(candidate, field) for candidate in found], [one[name] for one in candidates], atol=1e-6
            )


@pytest.mark.parametrize(("n_best", "longest"), [(20, 30), (5, 8)])
def test_answers_of_spans_are_the_references(n_best, longest, folder):
    windows, case = windows_of("xquad_en", folder), f"n{n_best}_l{longest}"
    scores = SpanScores.from_outputs(scores_of("v1_xquad_en.logits.npz"), n_best)
    answers = find_answers(windows, scores, n_best, longest)
    texts = {question: answer.text for question, answer in answers.items()}
    expected = read_json(PREDICTIONS / f"v1_xquad_en.predictions_{case}.json")
    candidates = read_json(PREDICTIONS / f"v1_xquad_en.nbest_{case}.json.gz")
    without = [question for question, text in expected.items() if text == "empty"]  # the reference's word for none
    assert len(without) == (35 if n_best == 5 else 0)
    assert texts == {**expected, **dict.fromkeys(without, "")}
    for question in without:
        candidates[question][0]["text"] = ""
    assert_candidates(answers, candidates)
    result = squad_scores({question.id: question.answers for question in windows.questions}, texts)
    expected = read_json(PREDICTIONS / "scores.json")["v1_xquad_en"][case]
    assert (result.exact, result.f1) == pytest.approx((expected["exact_match"], expected["f1"]))


@pytest.mark.parametrize(("name", "questions"), [("v2_squad", "squad_v2"), ("v2_short", "squad_v2_short")])
def test_answers_of_beams_are_the_references(name, questions, folder):
    windows, expected = windows_of(questions, folder), read_json(PREDICTIONS / "scores.json")[name]
    answers = find_answers(windows, SpanScores.from_outputs(scores_of(f"{name}.beams.npz")))
    accepted = {question.id: question.answers for question in windows.questions}
    no_answer = {question: answer.no_answer_score for question, answer in answers.items()}
    assert no_answer == pytest.approx(read_json(PREDICTIONS / f"{name}.null_odds.json"), abs=1e-6)
    texts = {question: answer.text for question, answer in answers.items()}
    assert texts == read_json(PREDICTIONS / f"{name}.predictions_before_threshold.json")
    assert_candidates(answers, read_json(PREDICTIONS / f"{name}.nbest.json.gz"))
    best = squad2_scores(accepted, texts, no_answer).best_f1
    assert best.threshold == pytest.approx(expected["final"]["null_score_diff_threshold"], abs=1e-6)
    as_reference = apply_threshold(answers, best.threshold, reference_scoring=True)
    assert as_reference == read_json(PREDICTIONS / f"{name}.predictions.json")
    for given, result in ((no_answer, "final"), (None, "final_predictions_scored_plainly")):
        scores = squad2_scores(accepted, as_reference, given).overall
        assert (scores.exact, scores.f1) == pytest.approx((expected[result]["exact"], expected[result]["f1"]))
    # Unlike the reference's, our predictions reach the score that the search promises. In v2_squad one is ",", which
    # the search counts as an answer and the scores, after normalisation, as none.
    ours = squad2_scores(accepted, apply_threshold(answers, best.threshold)).overall
    assert best.score == pytest.approx(expected["first_pass"]["best_f1"])
    assert ours.f1 == pytest.approx(best.score + (0.5 if name == "v2_squad" else 0.0))


def test_a_span_head_compares_no_answer_with_the_best_one():
    windows = encode_questions(AlbertTokenizer.english(), [Question("q", "who?", "Jane Austen wrote it.")], 32, 8)
    logits = {f"{edge}_logits": np.full([1, 12], -9.0, np.float32) for edge in ("start", "end")}
    logits["start_logits"][0, [0, 4]] = logits["end_logits"][0, [0, 5]] = 2.0, 3.0
    answer = find_answers(windows, SpanScores.from_outputs(logits))["q"]
    assert (answer.text, answer.candidates[0].start, answer.candidates[0].end) == ("Jane Austen", 0, 11)
    assert answer.no_answer_score == pytest.approx(4.0 - 6.0)


def test_without_a_candidate_the_answer_is_empty():
    windows = encode_questions(AlbertTokenizer.english(), [Question("q", "who?", "Jane.")], 32, 8)
    logits = {f"{edge}_logits": np.arange(8, dtype=np.float32)[None] for edge in ("start", "end")}
    scores = SpanScores.from_outputs(logits, n_best=1)  # the best start is [SEP]
    assert find_answers(windows, scores)["q"].text == ""


# === Files ===


def write(folder, questions, context="Jane Austen wrote it."):
    path = folder / "file.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}]}]}), encoding="utf-8")
    return path


def asked(identifier="q", **changes):
    answers = [{"text": "Jane", "answer_start": 0}]
    return {"id": identifier, "question": "who?", "answers": answers, **changes}


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "has no questions"),
        ([asked(), asked()], r"qas\[1\]: the id 'q' is that of an earlier question"),
        ([asked(answers=[{"text": "Jane", "answer_start": 0.5}])], r"qas\[0\]: every answer must .* `answer_start`"),
        ([asked(question=" ")], r"element 1, paragraphs\[0\]\.qas\[0\]: the question is empty; fill it in"),
        ([asked(question=None)], r"element 1, paragraphs\[0\]\.qas\[0\]: question='None' is not a string"),
        (["who?"], r"element 1, paragraphs\[0\]\.qas\[0\], is not an object"),
        ([asked(answers=[["Jane"]])], r"qas\[0\]: answers must be texts, each with a start"),
        ([asked(answers={"text": ["Jane"], "answer_start": [0, 1]})], "answers must be texts, each with a start"),
        ([asked(answers="Janet")], r"element 1, paragraphs\[0\]\.qas\[0\] \('Janet'\): .* one of 1 such"),
        ([asked(answers=[{"text": "Jane", "answer_start": 5}])], r"qas\[0\] \('Jane'\): the answer is not in its"),
        ([asked(answers=[{"text": "", "answer_start": 0}])], "the answer is not in its passage at `answer_start`"),
    ],
)
def test_wrong_files_are_refused(tmp_path, questions, message):
    with pytest.raises(ValueError, match=message):
        read_questions(write(tmp_path, questions))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "has no rows"),
        ("{}", "an object with such a list as `data`"),
        ('{"data": [{}]}', "element 1, has none of the forms of question answering; its columns are none"),
        ('[{"text": "x", "label": 1}]', r"its columns are 'text', 'label'\. Rename them"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "file.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_questions(tmp_path / "file.json")
    with pytest.raises(ValueError, match="the passage is empty"):
        read_questions(write(tmp_path, [asked()], context=" "))


def test_misplaced_answers_can_be_kept_for_scores_alone(tmp_path):
    path = write(tmp_path, [asked(answers=[{"text": "Austen", "answer_start": 0}]), asked("p")])
    questions = read_questions(path, misplaced="drop")
    assert [(question.answers, question.starts) for question in questions] == [(("Austen",), (-1,)), (("Jane",), (0,))]
    labels = encode_questions(AlbertTokenizer.english(), questions, 32, 8).labels()
    assert labels["is_impossible"].tolist() == [1, 0]


def test_a_question_without_an_answer(tmp_path):
    for changes in ({"is_impossible": True}, {"answers": [], "is_impossible": True}, {"answers": []}):
        (question,) = read_questions(write(tmp_path, [asked(**changes)]))
        assert question.answers == ()


def test_a_passage_in_windows_that_are_too_short():
    questions = [Question("q", "who?", "Jane."), Question("r", "who wrote it?", "Jane.")]
    with pytest.raises(ValueError, match=r"a question of 4 ids, 'who wrote it\?'; lower .* to at most 2\.$"):
        encode_questions(AlbertTokenizer.english(), questions, 6, 1, max_question_length=64)
    assert len(encode_questions(AlbertTokenizer.english(), questions, 6, 1)) > 1
    assert len(encode_questions(AlbertTokenizer.english(), questions, 6, 1, max_question_length=2)) > 1
    with pytest.raises(ValueError, match="`max_length` must be at least 5 for a question and a passage"):
        encode_questions(AlbertTokenizer.english(), questions, 4, 1)
