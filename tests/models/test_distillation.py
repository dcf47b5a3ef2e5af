"""Proves the loss of a student beside a plain NumPy form, and that its teacher is neither trained nor saved."""

import keras
import numpy as np
import pytest

from albert_tf import (
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForQuestionAnswering,
    AlbertForSentenceEmbedding,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
)
from tests.models.small import CONFIG, make_choices, make_inputs
from tests.parameters import first_of

DEEP = CONFIG.replace(num_hidden_layers=4, initializer_range=0.3)
SHALLOW = DEEP.replace(num_hidden_layers=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
CALLS = ((1, 2), (2, 4))  # of the student and of the teacher
ROWS = 6


def divergences(ours, theirs):
    """4 times the Kullback-Leibler divergence at temperature 2."""
    ours, theirs = (logits / 2 - logits.max(axis=-1, keepdims=True) / 2 for logits in (ours, theirs))
    ours, theirs = (logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True)) for logits in (ours, theirs))
    return 4 * (np.exp(theirs) * (theirs - ours)).sum(axis=-1)


def of_decisions(ours, theirs):
    ours, theirs = 1 / (1 + np.exp(-ours / 2)), 1 / (1 + np.exp(-theirs / 2))
    return 4 * (theirs * np.log(theirs / ours) + (1 - theirs) * np.log((1 - theirs) / (1 - ours)))


def one_minus_cosine(ours, theirs):
    return 1 - (ours * theirs).sum(-1) / np.linalg.norm(ours, axis=-1) / np.linalg.norm(theirs, axis=-1)


random = np.random.default_rng(1)
TEXTS, CHOICES = make_inputs(ROWS), make_choices(ROWS, 2)
STARTS = {**TEXTS, "start_positions": np.ones(ROWS, "int32")}
EDGES = {"start_positions": np.ones(ROWS, "int32"), "end_positions": np.full(ROWS, 2, "int32")}
CLASSES = random.integers(0, 3, ROWS)


def texts(**given):
    return lambda config: AlbertForSequenceClassification(config, **given)


# A model, its inputs and labels, and the plain form for each of its outputs.
TASKS = {
    "classification": (texts(num_labels=3), TEXTS, CLASSES, {"logits": divergences}),
    "multi_label": (
        texts(num_labels=3, problem="multi_label"),
        TEXTS,
        random.integers(0, 2, (ROWS, 3)),
        {"logits": of_decisions},
    ),
    "regression": (
        texts(problem="regression"),
        TEXTS,
        random.random(ROWS),
        {"logits": lambda ours, theirs: (ours - theirs) ** 2},
    ),
    "tags": (
        lambda config: AlbertForTokenClassification(config, num_labels=3),
        TEXTS,
        random.integers(0, 3, TEXTS["input_ids"].shape),
        {"logits": divergences},
    ),
    "choices": (AlbertForMultipleChoice, CHOICES, CLASSES % 2, {"logits": divergences}),
    "span": (AlbertForQuestionAnswering, TEXTS, EDGES, {"start_logits": divergences, "end_logits": divergences}),
    "beam": (
        lambda config: AlbertForQuestionAnswering(config, head="beam"),
        STARTS,
        {**EDGES, "is_impossible": CLASSES % 2},
        {"start_log_probs": divergences, "end_log_probs": divergences, "cls_logits": of_decisions},
    ),
    "embedding": (
        lambda config: AlbertForSentenceEmbedding(config, objective="triplet"),
        make_choices(ROWS, 3),
        None,
        {"sentence_embedding": one_minus_cosine},
    ),
}


def pair(make, config=SHALLOW, rate=0.0, seed=1, **changes):
    """A student with weights of its own, and its teacher."""
    keras.utils.set_random_seed(seed)
    teacher, student = make(DEEP), make(config)
    student.compile(keras.optimizers.SGD(rate), teacher=teacher, **{"jit_compile": False, **changes})
    return student, teacher


def states_of(model, inputs):
    rows = {name: array.reshape(-1, array.shape[-1]) for name, array in inputs.items() if array.ndim > 1}
    return [state.numpy() for state in model.encoder(rows, output_hidden_states=True)["hidden_states"]]


@pytest.mark.parametrize("task", first_of(TASKS, count=3))
def test_the_loss_is_that_of_labels_of_outputs_and_of_hidden_states(task):
    make, inputs, labels, plain = TASKS[task]
    student, teacher = pair(make, run_eagerly=True)
    own = pair(make, run_eagerly=True)[0].test_on_batch(inputs, labels, return_dict=True)["loss"]
    ours, theirs = (
        {name: value.numpy().astype("float64") for name, value in model(inputs).items()} for model in (student, teacher)
    )
    mask = inputs["attention_mask"].astype(bool)
    outputs = [plain[name](ours[name], theirs[name]) for name in plain]
    taught = np.mean([values[mask].mean() if task == "tags" else values.mean() for values in outputs])
    ours, theirs = states_of(student, inputs), states_of(teacher, inputs)
    squares = [((ours[a] - theirs[b]) ** 2).mean(axis=-1)[mask.reshape(-1, mask.shape[-1])].mean() for a, b in CALLS]
    found = student.train_on_batch(inputs, labels, return_dict=True)["loss"]
    assert taught > 1e-3
    np.testing.assert_allclose(found, own + taught + np.mean(squares), rtol=2e-6)


def arrays(model):
    return [variable.numpy() for variable in model.variables]


def test_a_teacher_is_neither_trained_nor_among_the_variables_and_microbatches_add_up():
    trained = []
    for microbatches in (1, 2):
        student, teacher = pair(TASKS["tags"][0], rate=0.1, gradient_accumulation_steps=microbatches, run_eagerly=True)
        before, count = arrays(teacher), len(student.variables)
        student.fit(*TASKS["tags"][1:3], batch_size=ROWS, epochs=2, shuffle=False, verbose=0)
        assert count == len(student.variables) == len(TASKS["tags"][0](SHALLOW).variables)
        assert all(np.array_equal(*values) for values in zip(before, arrays(teacher), strict=True))
        trained.append(arrays(student))
    for whole, added_up in zip(*trained, strict=True):
        np.testing.assert_allclose(added_up, whole, atol=2e-6)


def test_a_student_with_the_weights_of_its_teacher_is_the_teacher_with_fewer_calls(tmp_path):
    make, inputs, _, _ = TASKS["classification"]
    make(DEEP).save_pretrained(tmp_path)
    student = AlbertForSequenceClassification.from_pretrained(tmp_path, num_hidden_layers=2)
    teacher = AlbertForSequenceClassification.from_pretrained(tmp_path)
    states = teacher.encoder(inputs, output_hidden_states=True)["hidden_states"]
    expected = teacher.classifier(teacher.encoder.pooler(states[2][:, 0]))
    np.testing.assert_allclose(student(inputs)["logits"], expected, atol=1e-6)


def test_a_file_of_a_student_has_to_be_compiled_anew(tmp_path):
    student, _ = pair(TASKS["classification"][0], rate=0.1)
    student.save(tmp_path / "student.keras")
    loaded = keras.saving.load_model(tmp_path / "student.keras")
    assert not loaded.compiled
    assert not any(np.any(a != b) for a, b in zip(arrays(loaded), arrays(student), strict=True))


classifier = TASKS["classification"][0]
REFUSED = {
    "more calls than the teacher": (classifier, DEEP.replace(num_hidden_layers=5), {}, "must not exceed the teacher's"),
    "another width": (classifier, DEEP.replace(hidden_size=32), {}, "hidden_size 16 instead of 32"),
    "recomputed activations": (classifier, SHALLOW, {"remat": "block"}, "gradient_accumulation_steps saves memory"),
    "a loop of layers": (classifier, SHALLOW, {"scan_layers": True}, "`teacher` must be None with `remat` or"),
    "no labels": (AlbertForMaskedLM, SHALLOW, {}, "must be None for AlbertForMaskedLM"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_distilled_is_refused(case):
    make, config, changes, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        pair(make, config, **changes)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (texts(num_labels=4), "'LABEL_3'\\) instead of \\('LABEL_0'"),
        (texts(labels=["b", "a", "c"]), "labels \\('b'"),
        (TASKS["tags"][0], "architecture AlbertForTokenClassification instead of AlbertForSequenceClassification"),
        (texts(num_labels=3, problem="multi_label"), "problem multi_label instead of classification"),
        (lambda config: keras.Sequential(), "architecture None instead of"),
    ],
)
def test_a_teacher_of_another_task_is_refused(other, message):
    with pytest.raises(ValueError, match=message):
        classifier(SHALLOW).compile(teacher=other(DEEP))
