"""Distillation: a student imitates the outputs and hidden states of a teacher, beside learning from labels.

Letters: B batch, L sequence, C classes, D hidden.
"""

from collections.abc import Sequence
from typing import Any, Literal

from keras import ops

from albert_tf.layers.kernels import fastest_for_inference, inference_with
from albert_tf.models.inputs import check_inputs
from albert_tf.models.losses import WeightedMean, weighted_mean

# What an output consists of: logits of classes that exclude each other, the same for each token, a logit of each
# decision, numbers, or vectors whose length does not count.
Imitation = Literal["classes", "classes_of_tokens", "decisions", "numbers", "directions"]

# Logits are divided by it, so that the teacher's less probable classes count too.
_TEMPERATURE = 2.0
_COMPARED = ("architecture", "problem", "labels", "head", "pooling", "normalize", "dense_size")


class Distillation:
    """The loss terms that a teacher adds to those of a student, with equal weights:

    - of outputs: the Kullback-Leibler divergence of the teacher's probabilities and the student's, with logits divided
      by 2 and the divergence multiplied by 4, the mean over outputs; for numbers the squared error, for sentence
      embeddings 1 minus the cosine.
    - of hidden states: the squared difference of those after the student's layer call i of N and the teacher's call
      i * L / N of L, rounded; the mean over units, calls and tokens without padding.

    Sample weights and ignored labels count for the student's own loss only.

    Args:
        student: a task model.
        teacher: a model of the same class, with at least as many layer calls.

    Raises:
        ValueError: the two do not fit together, or the student is not trained by our own step.

    References:
        Distilling the Knowledge in a Neural Network, arXiv 1503.02531; TinyBERT, arXiv 1909.10351.
    """

    def __init__(self, student, teacher):
        if not student.has_own_step:
            raise ValueError(
                "`teacher` must be None on backends other than TensorFlow, and if "
                f"{type(student).__name__} overrides train_step or test_step. Received: teacher={teacher!r}."
            )
        check_teacher(student, teacher)
        if student.encoder.remat_span or student.encoder.scan_layers:
            raise ValueError(
                "`teacher` must be None with `remat` or `scan_layers`, which do not keep the hidden states that are "
                f"compared. Received: teacher={teacher!r}; gradient_accumulation_steps saves memory as well."
            )
        self.teacher = teacher

    def outputs_and_terms(self, student, inputs, training: bool) -> tuple[Any, dict[str, WeightedMean]]:
        """The student's outputs, and the terms by name. The teacher has no dropout in training either."""
        inputs, _ = check_inputs(student, inputs)
        with inference_with(self.teacher, fastest_for_inference()):
            targets = self.teacher(inputs, training=False, output_hidden_states=True)
        outputs = student(inputs, training=training, output_hidden_states=True)
        states = outputs.pop("hidden_states")
        mask = inputs.get("attention_mask")
        terms = {
            f"imitated_{name}": _term_of_output(kind, outputs[name], targets[name], mask)
            for name, kind in student.imitated.items()
        }
        terms = {name: term.times(1 / len(terms)) for name, term in terms.items()}
        of_states = _term_of_states(states, targets["hidden_states"], student.config, mask)
        return outputs, {**terms, "imitated_states": of_states}


def check_teacher(student, teacher) -> None:
    """Raises ValueError if a model cannot be the teacher of another."""
    if not student.imitated:
        raise ValueError(
            f"`teacher` must be None for {type(student).__name__}, whose outputs are not imitated; use a task model."
        )
    ours, theirs = _comparable(student), _comparable(teacher)
    if different := [
        f"{name} {theirs.get(name)} instead of {ours[name]}" for name in ours if theirs.get(name) != ours[name]
    ]:
        raise ValueError(
            "`teacher` must have the student's task, labels, vocabulary and width. Received: a teacher with "
            f"{', '.join(different)}; train one with those of the student, or give the student those of the teacher."
        )
    calls, most = student.config.num_hidden_layers, teacher.config.num_hidden_layers
    if calls > most:
        raise ValueError(
            f"`num_hidden_layers` must not exceed the teacher's {most}. Received: num_hidden_layers={calls}."
        )


def _comparable(model) -> dict[str, Any]:
    """What a student and its teacher must have in common."""
    attributes = {name: getattr(model, name) for name in _COMPARED if hasattr(model, name)}
    sizes = ("vocab_size", "hidden_size", "inner_group_num")
    return attributes | {name: getattr(model.config, name) for name in sizes if hasattr(model, "config")}


def _term_of_output(kind: Imitation, ours, theirs, mask) -> WeightedMean:
    ours, theirs = ops.cast(ours, "float32"), ops.stop_gradient(ops.cast(theirs, "float32"))
    if kind == "numbers":
        return weighted_mean(ops.square(ours - theirs))
    if kind == "directions":
        return weighted_mean(1 - ops.sum(ops.normalize(ours) * ops.normalize(theirs), axis=-1))
    if kind == "decisions":  # two classes, of which one has the logit 0
        ours, theirs = (ops.stack([logits, ops.zeros_like(logits)], axis=-1) for logits in (ours, theirs))
    ours, theirs = (ops.log_softmax(logits / _TEMPERATURE, axis=-1) for logits in (ours, theirs))
    divergences = _TEMPERATURE**2 * ops.sum(ops.exp(theirs) * (theirs - ours), axis=-1)
    return weighted_mean(divergences, mask if kind == "classes_of_tokens" else None)


def _term_of_states(ours: Sequence[Any], theirs: Sequence[Any], config, mask) -> WeightedMean:
    inner = config.inner_group_num
    calls, their_calls = (len(ours) - 1) // inner, (len(theirs) - 1) // inner
    squares = [
        ops.square(
            ops.cast(ours[call * inner], "float32") - ops.cast(ops.stop_gradient(theirs[other * inner]), "float32")
        )
        for call, other in _matching_calls(calls, their_calls)
    ]  # [B, L, D] each
    return weighted_mean(ops.mean(sum(squares) / calls, axis=-1), mask)


def _matching_calls(count: int, their_count: int) -> list[tuple[int, int]]:
    """The student's layer calls, counted from 1, each with the teacher's that it imitates.

    Example:

    >>> _matching_calls(4, 6)
    [(1, 2), (2, 3), (3, 5), (4, 6)]
    """
    return [(call, (2 * call * their_count + count) // (2 * count)) for call in range(1, count + 1)]
