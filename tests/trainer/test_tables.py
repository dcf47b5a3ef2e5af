"""Fine-tuning on tables: several labels per text, and class weights."""

import json
import random
from collections import Counter

import numpy as np
import pandas
import pytest
import tensorflow as tf
from sklearn.metrics import f1_score, precision_recall_fscore_support

import albert_tf
from albert_tf.data.finetuning.classification import Columns, read_texts
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.export import export_saved_model
from albert_tf.metrics import ConstantScore, LabelScores, MultiLabelScores, multi_label_scores
from albert_tf.tasks.sequence_classification.evaluation import LabelEvaluation, write_predictions
from albert_tf.tasks.sequence_classification.task import TextClassification
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.evaluation import evaluate_folder
from tests.toy_task import mood_rows, tokenizer, write_mood_table, write_pretrained

FIELDS = ("precision", "recall", "f1", "examples")
TOPICS = {"law": ("judge", "court"), "sport": ("ball", "race"), "war": ("army", "sword")}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_pretrained(folder / "pretrained")
    write_mood_table(folder / "few.tsv", 40, seed=3)
    chance, lines = random.Random(0), []
    for _ in range(120):
        topics = [topic for topic in TOPICS if chance.random() < 0.4]
        words = [*chance.choices(("the", "old", "man", "went"), k=3), *(chance.choice(TOPICS[t]) for t in topics)]
        lines.append({"text": " ".join(words), "label": topics})
    (folder / "topics.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = ["text\tlabel", *(f"{line['text']}\t{', '.join(line['label'])}" for line in lines)]
    (folder / "topics.tsv").write_text("\n".join(rows), encoding="utf-8")
    return folder


def options_for(files, output, file="few.tsv", **changes):
    paths = {"pretrained": files / "pretrained", "train": files / file, "dev": files / file, "output": output}
    return FinetuneOptions(**{**paths, "epochs": 1, "batch_size": 8, **changes})


@pytest.mark.exhaustive
def test_passages_are_ranked(files, tmp_path):
    pairs = [(*mood_rows(1, seed)[0][:1], *mood_rows(1, 1000 + seed)[0]) for seed in range(320)]
    frame = pandas.DataFrame(pairs, columns=["query", "passage", "mood"])
    frame["relevance"] = (frame["mood"] == "pleasant").astype(int)
    columns = {"text_column": "query", "pair_column": "passage", "label_column": "relevance", "problem": "regression"}
    train, dev = frame[:280], frame[280:]
    finetune(options_for(files, tmp_path / "run", train=train, dev=dev, **columns, epochs=12, learning_rate=5e-3))
    found = albert_tf.pipeline(tmp_path / "run")([dev["query"].iloc[0]] * 40, dev["passage"])
    best_first = dev["relevance"].to_numpy()[np.argsort([-each.score for each in found])]
    relevant = int(best_first.sum())
    assert 0 < relevant < 40
    assert best_first[:relevant].mean() > 0.9


@pytest.mark.exhaustive
def test_several_labels_per_text_are_learnt(files, tmp_path):
    options = options_for(files, tmp_path, "topics.jsonl", problem="multi_label", epochs=12, learning_rate=3e-3)
    report = finetune(options)
    assert isinstance(report.scores, MultiLabelScores)
    assert report.main_score == "f1_micro"
    assert report.scores.f1_micro > 0.9
    predictor = albert_tf.pipeline(tmp_path)
    assert (predictor.model.model.problem, predictor.model.model.labels) == ("multi_label", tuple(TOPICS))
    lines = [json.loads(line) for line in (files / "topics.jsonl").read_text(encoding="utf-8").splitlines()]
    most = Counter(tuple(line["label"]) for line in lines).most_common(1)[0][1] / 120
    assert report.constant_score == ConstantScore("exact match of the most frequent labels", most)
    found = predictor([line["text"] for line in lines])
    right = [set(prediction.labels) == set(line["label"]) for prediction, line in zip(found, lines)]
    assert np.mean(right) == pytest.approx(report.scores.exact_match)
    _, again = evaluate_folder(tmp_path, files / "topics.tsv", predictions=tmp_path / "out.tsv")
    assert again.scores == report.scores
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    right = [set(label.replace(" ", "").split(",")) == set(found.split(",")) for _, label, found, *_ in rows]
    assert np.mean(right) == pytest.approx(report.scores.exact_match)


@pytest.mark.exhaustive
@pytest.mark.parametrize("threshold", [None, "per_label", {"law": 0.25}])
def test_the_threshold_of_fine_tuning_is_that_of_every_use(files, tmp_path, threshold):
    options = options_for(files, tmp_path / "run", "topics.jsonl", problem="multi_label", max_length=16)
    report = finetune(options.model_copy(update={"threshold": threshold, "learning_rate": 2e-3}))
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["threshold"] == report.threshold
    if threshold is None:
        assert 0 < report.threshold < 1
        assert report.threshold != 0.5
    else:
        assert len(set(report.threshold.values())) > 1 or threshold == {"law": 0.25} == report.threshold
    _, evaluation = evaluate_folder(tmp_path / "run", files / "topics.tsv", predictions=tmp_path / "out.csv")
    assert evaluation.scores == report.scores
    predictor = albert_tf.pipeline(tmp_path / "run")
    assert predictor.model.settings.threshold == report.threshold
    examples = read_texts(files / "topics.jsonl", Columns(separator=","))
    predicted = [[label in one.labels for label in TOPICS] for one in predictor(examples.texts)]
    assert multi_label_scores(examples.label_decisions(TOPICS), predicted, TOPICS) == report.scores
    export = export_saved_model(tmp_path / "run", tmp_path, "saved", threshold={"war": 0.4}).folder
    settings = json.loads((export / "model.json").read_text())
    limits = dict.fromkeys(TOPICS, report.threshold) if threshold is None else dict(report.threshold)
    expected = {**dict.fromkeys(TOPICS, 0.5), **limits, "war": 0.4}
    assert settings["threshold"] == pytest.approx(expected, abs=1e-6)
    assert "| Threshold | law " in (export / "MODEL.md").read_text()
    outputs = tf.saved_model.load(str(export)).signatures["serving_default"](text=tf.constant(examples.texts[:40]))
    wanted = albert_tf.pipeline(tmp_path / "run", threshold={"war": 0.4})(examples.texts[:40])
    assert [[name.decode() for name in row if name] for row in outputs["labels"].numpy()] == [
        one.labels for one in wanted
    ]
    limited = evaluate_folder(export, files / "topics.tsv", threshold=1.0)[1]
    assert (limited.scores.f1_micro, limited.threshold) == (0.0, 1.0)


def test_a_threshold_of_another_model_is_refused(files, tmp_path):
    options = options_for(files, tmp_path, "topics.jsonl", problem="multi_label", threshold={"low": 0.2})
    with pytest.raises(ValueError, match=r"`threshold` must name labels of the model\. Received: 'low'; did you"):
        task_of(options)[0].model_arguments(None)


@pytest.mark.parametrize("separator", [",", "|", "; "])
@pytest.mark.parametrize("delimiter", ["tab", None])
def test_predicted_labels_are_read_back_as_they_were(tmp_path, separator, delimiter):
    names = ("IT, science", "law", 'say "yes"', '"no"', "[sic]", "a|b", "c; d", "3", " space ", '["x"]')
    names += ("tab\tbreak\n",) if delimiter else ()  # the column of its probabilities is in quotes
    chance = np.random.default_rng(0)
    decisions = np.concatenate([np.eye(len(names)), chance.random((60, len(names))) < 0.3, np.zeros((1, len(names)))])
    rows = [{"text": f"text {n}", "label": [names[0]]} for n in range(len(decisions))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    texts = read_texts(tmp_path / "rows.jsonl", Columns(separator=separator))
    evaluation = LabelEvaluation("multi_label", names, decisions, 9 * (decisions - 0.5), "f1_micro")
    write_predictions(tmp_path / "predictions.tsv", texts, evaluation)
    columns = Columns("line", None, "prediction", separator)
    again = read_texts(tmp_path / "predictions.tsv", columns, TableFormat(delimiter=delimiter))
    np.testing.assert_array_equal(again.label_decisions(names), decisions)


def test_lists_and_separated_labels_are_the_same(files):
    of_lists = read_texts(files / "topics.jsonl", Columns(separator=","))
    of_cells = read_texts(files / "topics.tsv", Columns(separator=","))
    names = of_lists.label_names()
    assert names == of_cells.label_names() == tuple(TOPICS)
    np.testing.assert_array_equal(of_lists.label_decisions(names), of_cells.label_decisions(names))
    assert (of_cells.label_decisions(names).sum(axis=1) == 0).any()
    with pytest.raises(ValueError, match=r"topics\.tsv, line \d+: the label 'war' is not one of 'law', 'sport'"):
        of_cells.label_decisions(("law", "sport"))


def test_scores_of_several_labels_are_those_of_scikit_learn():
    chance = np.random.default_rng(0)
    labels, predictions = chance.integers(0, 2, (2, 50, 4))
    found = multi_label_scores(labels, predictions)
    assert found.f1_micro == pytest.approx(f1_score(labels, predictions, average="micro"))
    assert found.f1_macro == pytest.approx(f1_score(labels, predictions, average="macro"))
    assert found.exact_match == (labels == predictions).all(axis=1).mean()
    each = precision_recall_fscore_support(labels, predictions)
    columns = [[getattr(scores, name) for scores in found.by_label.values()] for name in FIELDS]
    np.testing.assert_allclose(columns, each)
    assert multi_label_scores([[0]], [[0]]) == MultiLabelScores(0.0, 0.0, 1.0, {"0": LabelScores(None, None, None, 0)})
    with pytest.raises(ValueError, match="must be non-empty tables of equal size"):
        multi_label_scores([[0, 1]], [[0]])


def test_balanced_weights_give_all_classes_the_same_share(files, tmp_path):
    options = options_for(files, tmp_path, class_weights="balanced", max_length=32)
    task, data = task_of(options)
    _, labels, weights = task.training_examples(data).training_batch(np.arange(len(data)))
    shares = [weights[labels == label].sum() for label in (0, 1)]
    assert shares == pytest.approx([len(data) / 2] * 2)
    assert len({(labels == label).sum() for label in (0, 1)}) == 2, "the classes differ in size"


def task_of(options):
    """The task with the labels of its training examples, and these."""
    data = TextClassification(None, options.settings).read(options.train)
    return TextClassification(tokenizer(), options.settings.with_facts(labels=data.label_names())), data


def test_weights_of_classes_by_name(files, tmp_path):
    options = options_for(files, tmp_path, class_weights={"gloomy": 3}, label_smoothing=0.1, max_length=32)
    task, data = task_of(options)
    assert task.model_arguments(data)["label_smoothing"] == 0.1
    _, labels, weights = task.training_examples(data).training_batch(np.arange(len(data)))
    np.testing.assert_array_equal(weights, np.where(labels == task.labels.index("gloomy"), 3, 1))
    task, data = task_of(options.model_copy(update={"class_weights": {"glomy": 3.0}}))
    with pytest.raises(ValueError, match=r"`class_weights` must be of labels.*'gloomy'.* Received: 'glomy'"):
        task.training_examples(data)
