"""Fine-tuning on questions about passages, with both heads, and the files that it writes."""

import json

import pytest

from albert_tf.metrics import AnswerScores, ConstantScore, SquadScores
from albert_tf.tasks.question_answering.answers import Answer, Candidate
from albert_tf.tasks.question_answering.evaluation import AnswerEvaluation
from albert_tf.tasks.question_answering.questions import Question
from albert_tf.tasks.question_answering.task import QuestionAnswering
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate_folder
from tests.toy_task import tokenizer, write_pretrained

NAMES = ("Anna", "Bruno", "Clara", "David", "Emma", "Felix", "Greta", "Henry")
PLACES = ("garden", "kitchen", "station", "market", "harbour")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("questions")
    write_pretrained(folder / "pretrained")
    for file, with_impossible in (("v1.json", False), ("v2.json", True)):
        paragraphs = []
        for number, name in enumerate(NAMES * 3):
            place = PLACES[number % len(PLACES)]
            context = f"It was late. {name} went to the {place}." + " Nobody was there, and it rained." * (number % 5)
            answer = {"text": place, "answer_start": context.index(place)}
            questions = [{"id": f"{number}", "question": f"Where did {name} go?", "answers": [answer]}]
            if with_impossible:
                question = f"What did {name} eat?"
                questions.append({"id": f"{number}x", "question": question, "answers": [], "is_impossible": True})
            paragraphs.append({"context": context, "qas": questions})
        content = {"data": [{"title": "where", "paragraphs": paragraphs}]}
        (folder / file).write_text(json.dumps(content), encoding="utf-8")
    return folder


def options_for(files, output, file, **changes):
    values = {"task": "question_answering", "train": files / file, "dev": files / file, "output": output}
    layout = {"max_length": 32, "doc_stride": 12, "max_question_length": 12, "max_answer_length": 4}
    training = {"batch_size": 16, "learning_rate": 3e-3, "epochs": 12, "evaluations_per_epoch": 1}
    return FinetuneOptions(pretrained=files / "pretrained", **{**values, **layout, **training, **changes})


def test_answers_are_learnt(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "run", "v1.json"))
    assert isinstance(report.scores, AnswerScores)
    assert (report.main_score, report.scores.total, report.train_examples) == ("f1", 24, 24)
    assert report.scores.f1 > 60 > report.score_by_evaluation[0]
    assert report.cut_examples == 0  # passages are split into windows
    predictions = json.loads((tmp_path / "run/dev_predictions.json").read_text(encoding="utf-8"))
    candidates = json.loads((tmp_path / "run/dev_predictions_candidates.json").read_text(encoding="utf-8"))
    assert list(predictions) == list(candidates) == [str(number) for number in range(24)]
    assert all(predictions[question] == own[0]["text"] for question, own in candidates.items())
    examples, again = evaluate_folder(tmp_path / "run", files / "v1.json", tmp_path / "again.json")
    assert (examples, again.scores) == (24, report.scores)
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8")) == predictions


@pytest.mark.exhaustive
@pytest.mark.parametrize("task", ["question_answering", "question_answering_beam"])
def test_questions_without_an_answer(files, tmp_path, task):
    report = finetune(options_for(files, tmp_path / "run", "v2.json", task=task, epochs=16))
    scores = report.scores
    assert isinstance(scores, SquadScores)
    assert (scores.overall.total, scores.answerable.total, scores.unanswerable.total) == (48, 24, 24)
    assert scores.unanswerable.f1 > 70
    assert scores.overall.f1 > 60
    no_answer = json.loads((tmp_path / "run/dev_predictions_no_answer.json").read_text(encoding="utf-8"))
    predictions = json.loads((tmp_path / "run/dev_predictions.json").read_text(encoding="utf-8"))
    highest_answered = max(no_answer[question] for question, text in predictions.items() if text)
    assert all(no_answer[question] >= highest_answered for question, text in predictions.items() if not text)
    _, again = evaluate_folder(tmp_path / "run", files / "v2.json")
    assert again.scores == scores


def test_nothing_is_answered_if_that_is_best():
    questions = [Question("a", "Who?", "Anna came.", ("Anna",), (0,)), Question("b", "When?", "Anna came.")]
    wrong = (Candidate("came", 5, 9, 3.0, 2.0, 1.0),)
    evaluation = AnswerEvaluation.of(questions, {"a": Answer(wrong, -4.0), "b": Answer(wrong, -5.0)})
    assert evaluation.texts == {"a": "", "b": ""}
    assert (evaluation.main_score, evaluation.is_constant) == (50.0, True)
    assert evaluation.no_answer_threshold < -5.0
    assert evaluation.constant_score == ConstantScore("exact match if nothing is answered", 50.0)


def test_a_given_threshold_counts_where_all_questions_have_answers():
    questions = [Question(name, "Who?", "Anna came.", ("Anna",), (0,)) for name in "ab"]
    right = (Candidate("Anna", 0, 4, 3.0, 2.0, 1.0),)
    evaluation = AnswerEvaluation.of(questions, {"a": Answer(right, -4.0), "b": Answer(right, 2.0)}, threshold=1.0)
    assert (evaluation.texts, evaluation.main_score) == ({"a": "Anna", "b": ""}, 50.0)


def task_and_data(files, file, **changes):
    """The task, and the examples of a file."""
    task = QuestionAnswering(tokenizer(), options_for(files, files / "run", file, **changes).settings)
    return task, task.read(files / file)


def test_korquads_scorer_needs_answers(files):
    task, data = task_and_data(files, "v2.json", scorer="korquad")
    with pytest.raises(ValueError, match=r"`scorer` must be 'squad'.* 24 of 48 questions"):
        task.evaluator(None, data)


def test_files_without_answers_are_refused(files):
    content = json.loads((files / "v1.json").read_text(encoding="utf-8"))
    for paragraph in content["data"][0]["paragraphs"]:
        paragraph["qas"][0]["answers"] = []
    (files / "none.json").write_text(json.dumps(content), encoding="utf-8")
    task, data = task_and_data(files, "none.json")
    with pytest.raises(ValueError, match="None of the questions to evaluate on"):
        task.evaluator(None, data)
    with pytest.raises(ValueError, match="None of the training questions"):
        task.training_examples(data)


def test_questions_that_are_left_out_are_counted_and_named(files):
    content = json.loads((files / "v1.json").read_text(encoding="utf-8"))
    for paragraph in content["data"][0]["paragraphs"][:4]:
        paragraph["qas"][0]["answers"][0]["answer_start"] += 1
    (files / "wrong.json").write_text(json.dumps(content), encoding="utf-8")
    task, data = task_and_data(files, "wrong.json", misplaced_answers="drop")
    assert [*task.notes(data)] == [
        "4 of 24 training questions were left out, because their answers are not in their passages: '0', '1', '2', ..."
    ]
