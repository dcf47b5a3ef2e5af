"""How far mixed_bfloat16 and XLA are from float32, for every output and loss of every model."""

import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_tf import models

from .golden import reference_inputs

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
SPAN = ("start_positions", "end_positions")


class Case(NamedTuple):
    """A model in float32, and a batch for it; without labels there is no loss."""

    model: Any
    inputs: dict[str, np.ndarray]
    labels: Any = None


def golden_cases() -> dict[str, Case]:
    """Every model with recorded weights and a recorded batch, by name."""
    masked = ("masked_lm_positions",)
    pretraining = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")
    classification = "AlbertForSequenceClassification"
    cases = {
        "AlbertEncoder": _case("AlbertEncoder", "M1_small"),
        "AlbertForPreTraining": _case("AlbertForPreTraining", "M1_small", pretraining, masked),
        "AlbertForMaskedLM": _case("AlbertForMaskedLM", "M1_small", pretraining, masked),
        classification: _case(classification, "M3_heads/classifier", "labels"),
        f"{classification}, regression": _case(classification, "M3_heads/regression", "labels"),
        "AlbertForMultipleChoice": _case("AlbertForMultipleChoice", "M3_heads/race", "labels"),
        "AlbertForQuestionAnswering": _case("AlbertForQuestionAnswering", "M3_heads/squad_v1", SPAN),
        "AlbertForQuestionAnswering, beam": _case(
            *("AlbertForQuestionAnswering", "M3_heads/squad_v2", (*SPAN, "is_impossible"), SPAN[:1])
        ),
    }
    folder = GOLDEN / "hf_for_token_classification"
    arrays = dict(np.load(folder / "io.npz"))
    inputs = {name: arrays[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    model = models.AlbertForTokenClassification.from_pretrained(folder)
    return {**cases, "AlbertForTokenClassification": Case(model, inputs, arrays["labels"])}


def distances(case: Case) -> dict[str, tuple[float, float]]:
    """The largest absolute distances of each output, and of the loss, in bfloat16 and under XLA from float32.

    What the mask of the beam head makes about -1e30 is left out.
    """
    plain = _run(case.model, case)
    half = type(case.model).from_config({**case.model.get_config(), "dtype": "mixed_bfloat16"})
    half.set_weights(case.model.get_weights())
    others = _run(half, case), _run(case.model, case, jit_compile=True)
    return {
        name: tuple(float(np.max(np.abs(other[name] - value)[value > -1e29])) for other in others)
        for name, value in plain.items()
    }


def _run(model, case: Case, jit_compile: bool = False) -> dict[str, np.ndarray]:
    @tf.function(jit_compile=jit_compile)
    def run(inputs, labels):
        outputs = model(inputs, training=False)
        return outputs if labels is None else {**outputs, "loss": model.compute_loss(y=labels, y_pred=outputs)}

    labels = None if case.labels is None else tf.nest.map_structure(tf.constant, case.labels)
    results = run(tf.nest.map_structure(tf.constant, case.inputs), labels)
    return {name: np.asarray(tf.cast(value, tf.float32)) for name, value in results.items()}


def _case(kind: str, folder: str, labels: str | tuple = (), more: tuple = ()) -> Case:
    arrays = dict(np.load(GOLDEN / folder / "io.npz"))
    inputs = reference_inputs(arrays, *more)
    if kind == "AlbertForMultipleChoice":
        inputs = {name: array.reshape(-1, 4, 24) for name, array in inputs.items()}
    named = {name: arrays[name] for name in labels} if isinstance(labels, tuple) else arrays[labels]
    return Case(getattr(models, kind).from_pretrained(GOLDEN / folder), inputs, named if len(labels) else None)
