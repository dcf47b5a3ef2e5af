"""Proves that `finetune` with a teacher starts from it, leaves it as it is, resumes, and refuses what does not fit."""

import signal

import numpy as np
import pytest

from albert_tf import AlbertConfig, AlbertForSequenceClassification
from albert_tf.checkpoints import read
from albert_tf.files.validation import checked
from albert_tf.inference.folder import load_folder
from albert_tf.trainer import FinetuneOptions, finetune
from albert_tf.trainer.run_folder import read_metrics
from tests import toy_task
from tests.parameters import first_of
from tests.trainer.mood_runs import options_for, write_files
from tests.trainer.test_finetuning_resumed import assert_same_run, stop_at

DEEP = toy_task.CONFIG.replace(num_hidden_layers=4)
LABELS = ["pleasant", "gloomy"]  # not in the order of the training examples


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("distillation"))
    write_teacher(folder / "teacher")
    return folder


def write_teacher(folder, config: AlbertConfig = DEEP, tokenizer=None, **head):
    AlbertForSequenceClassification(config, **(head or {"labels": LABELS})).save_pretrained(folder)
    (tokenizer or toy_task.tokenizer()).save_pretrained(folder)
    return folder


def student_of(files, output, **changes):
    given = {"train": files / "few.tsv", "dev": files / "few.tsv", "output": output, "teacher": files / "teacher"}
    return checked(FinetuneOptions, {**given, "num_hidden_layers": 2, "epochs": 1, "batch_size": 16, **changes})


def test_a_student_starts_with_the_weights_of_its_teacher_which_is_not_changed(files, tmp_path):
    before = {file.name: file.read_bytes() for file in (files / "teacher").iterdir()}
    report = finetune(student_of(files, tmp_path / "student", learning_rate=1e-12))
    assert {file.name: file.read_bytes() for file in (files / "teacher").iterdir()} == before
    student, teacher = read(tmp_path / "student"), read(files / "teacher")
    assert (student.config.num_hidden_layers, teacher.config.num_hidden_layers) == (2, 4)
    assert student.arrays.keys() == teacher.arrays.keys()
    for path, array in student.arrays.items():
        expected = teacher.arrays[path]
        expected = expected[..., ::-1] if path.startswith("classifier/") else expected  # labels are sorted
        np.testing.assert_allclose(array, expected, atol=1e-9)
    assert load_folder(report.folder).model.config.num_hidden_layers == 2
    (logged,) = read_metrics(report.folder / "metrics.jsonl")
    assert logged["loss"] > logged["cross_entropy"] + 0.1  # what the teacher adds


@pytest.mark.exhaustive
def test_a_student_that_is_stopped_goes_on_to_the_same_bits(files, tmp_path):
    options = student_of(files, tmp_path / "whole", seed=5, learning_rate=1e-2, epochs=3)
    finetune(options)
    stopped = options.model_copy(update={"output": tmp_path / "stopped"})
    stop_at(5, stopped, signal.SIGTERM)
    other = stopped.model_copy(update={"teacher": write_teacher(tmp_path / "other")})
    with pytest.raises(ValueError, match=r"another recipe \(teacher.weights_sha256"):
        finetune(other)
    finetune(stopped)
    assert_same_run(stopped.output, options.output)


@pytest.mark.exhaustive
def test_depth_alone_is_plain_fine_tuning_and_a_teacher_alone_is_a_start(files, tmp_path):
    report = finetune(options_for(files, tmp_path / "plain", num_hidden_layers=1))
    assert read(report.folder).config.num_hidden_layers == 1
    teacher, path = write_teacher(tmp_path / "other"), "encoder/projection/kernel"
    run = finetune(student_of(files, tmp_path / "student", learning_rate=1e-12, teacher=teacher))
    np.testing.assert_allclose(read(run.folder).arrays[path], read(teacher).arrays[path], atol=1e-9)


OTHER = "must have the student's task, labels, vocabulary and width"
REFUSED = {
    "labels": (
        {"labels": ["good", "bad"]},
        {},
        rf"{OTHER}.*labels \('good', 'bad'\) instead of \('gloomy', 'pleasant'\)",
    ),
    "more labels": ({"labels": [*LABELS, "mixed"]}, {}, rf"{OTHER}.*labels"),
    "problem": ({"problem": "regression"}, {}, rf"{OTHER}.*problem regression instead of classification"),
    "width": ({"config": DEEP.replace(hidden_size=64)}, {"pretrained": "pretrained"}, rf"{OTHER}.*hidden_size 64"),
    "more calls": ({}, {"num_hidden_layers": 5}, "`num_hidden_layers` must not exceed the teacher's 4. Received"),
    "recomputation": ({}, {"remat": "block"}, "`remat` must be 'none' with a teacher"),
    "layers of their own": (
        {"config": DEEP.replace(share="none")},
        {},
        "that differ in .*, nor `num_hidden_layers` leave them out",
    ),
}


@pytest.mark.parametrize("case", first_of(REFUSED, count=4))
def test_a_teacher_that_does_not_fit_is_refused_before_anything_is_written(case, files, tmp_path):
    teacher, changes, message = REFUSED[case]
    write_teacher(tmp_path / "teacher", **teacher)
    if "pretrained" in changes:
        changes = {**changes, "pretrained": files / changes["pretrained"]}
    with pytest.raises(ValueError, match=message):
        finetune(student_of(files, tmp_path / "student", teacher=tmp_path / "teacher", **changes))
    assert not list((tmp_path / "student").glob("*.json"))


def test_a_teacher_without_a_head_or_with_another_vocabulary_is_refused(files, tmp_path):
    with pytest.raises(ValueError, match=rf"{OTHER}.*AlbertForPreTraining instead of AlbertForSequenceClassification"):
        finetune(student_of(files, tmp_path / "student", teacher=files / "pretrained"))
    tokenizer = toy_task.AlbertTokenizer.english()
    tokenizer.add_tokens(["[E1]"])
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("[E2]\n", encoding="utf-8")
    write_teacher(tmp_path / "teacher", DEEP.replace(vocab_size=len(tokenizer)), tokenizer)
    with pytest.raises(ValueError, match="`teacher` must have the vocabulary of the model"):
        finetune(
            student_of(
                files,
                tmp_path / "student",
                teacher=tmp_path / "teacher",
                pretrained=files / "pretrained",
                add_tokens=tokens,
            )
        )
