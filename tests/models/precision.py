"""How far mixed_bfloat16 and XLA are from float32, for every output and loss of every model."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from albert_tf import models

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
GOOGLE_NAMES = {"input_ids": "input_ids", "attention_mask": "input_mask", "token_type_ids": "segment_ids"}
PRETRAINING = ("masked_lm_ids", "masked_lm_weights", "sentence_order_labels")
SPAN = ("start_positions", "end_positions")


@dataclasses.dataclass(frozen=True)
class Case:
    """A model in float32, and a batch for it; without labels there is no loss."""

    name: str
    model: Any
    inputs: Mapping[str, np.ndarray]
    labels: Any = None


@dataclasses.dataclass(frozen=True)
class Distance:
    """Largest absolute distances of one output, or of the loss, from float32."""

    model: str
    output: str
    bfloat16: float
    xla: float


def golden_cases() -> Iterator[Case]:
    """Every model with recorded weights and a recorded batch."""
    arrays = _arrays("M1_small")
    inputs = _google_inputs(arrays)
    positions = {"masked_lm_positions": arrays["masked_lm_positions"]}
    labels = {name: arrays[name] for name in PRETRAINING}
    yield Case("AlbertEncoder", models.AlbertEncoder.from_pretrained(GOLDEN / "M1_small"), inputs)
    for kind in (models.AlbertForPreTraining, models.AlbertForMaskedLM):
        yield Case(kind.__name__, kind.from_pretrained(GOLDEN / "M1_small"), {**inputs, **positions}, labels)
    classification = models.AlbertForSequenceClassification
    yield _head("classifier", classification, lambda arrays: arrays["labels"])
    yield _head("regression", classification, lambda arrays: arrays["labels"], ", regression")
    arrays = _arrays("hf_for_token_classification")
    tokens = models.AlbertForTokenClassification.from_pretrained(GOLDEN / "hf_for_token_classification")
    yield Case("AlbertForTokenClassification", tokens, {name: arrays[name] for name in GOOGLE_NAMES}, arrays["labels"])
    race = _head("race", models.AlbertForMultipleChoice, lambda arrays: arrays["labels"])
    choices = {name: array.reshape(-1, 4, 24) for name, array in race.inputs.items()}
    yield dataclasses.replace(race, inputs=choices)
    answering = models.AlbertForQuestionAnswering
    yield _head("squad_v1", answering, lambda arrays: {name: arrays[name] for name in SPAN})
    names = (*SPAN, "is_impossible")
    beam = _head("squad_v2", answering, lambda arrays: {name: arrays[name] for name in names}, ", beam")
    starts = {"start_positions": _arrays("M3_heads/squad_v2")["start_positions"]}
    yield dataclasses.replace(beam, inputs={**beam.inputs, **starts})


def distances(case: Case) -> list[Distance]:
    """Measures one case. What the mask of the beam head makes about -1e30 is left out."""
    plain = _run(case.model, case)
    half = type(case.model).from_config({**case.model.get_config(), "dtype": "mixed_bfloat16"})
    half.set_weights(case.model.get_weights())
    in_half, under_xla = _run(half, case), _run(case.model, case, jit_compile=True)

    def largest(found, expected):
        return float(np.max(np.abs(found - expected)[expected > -1e29]))

    return [
        Distance(case.name, name, largest(in_half[name], value), largest(under_xla[name], value))
        for name, value in plain.items()
    ]


def _run(model, case: Case, jit_compile: bool = False) -> dict[str, np.ndarray]:
    @tf.function(jit_compile=jit_compile)
    def run(inputs, labels):
        outputs = model(inputs, training=False)
        return outputs if labels is None else {**outputs, "loss": model.compute_loss(y=labels, y_pred=outputs)}

    labels = None if case.labels is None else tf.nest.map_structure(tf.constant, case.labels)
    results = run(tf.nest.map_structure(tf.constant, dict(case.inputs)), labels)
    return {name: np.asarray(tf.cast(value, tf.float32)) for name, value in results.items()}


def _head(folder: str, kind, labels: Callable, suffix: str = "") -> Case:
    arrays = _arrays(f"M3_heads/{folder}")
    model = kind.from_pretrained(GOLDEN / "M3_heads" / folder)
    return Case(kind.__name__ + suffix, model, _google_inputs(arrays), labels(arrays))


def _arrays(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / name / "io.npz") as arrays:
        return dict(arrays)


def _google_inputs(arrays) -> dict[str, np.ndarray]:
    return {ours: arrays[theirs] for ours, theirs in GOOGLE_NAMES.items()}
