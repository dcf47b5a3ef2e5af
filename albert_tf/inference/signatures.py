"""The signatures of a SavedModel for an ONNX folder: from arrays by name to arrays by name.

Letters: B rows, C choices, L sequence.
"""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.config import AlbertConfig
from albert_tf.inference.loading import load_onnx
from albert_tf.inference.network import INPUTS
from albert_tf.inference.onnx_network import OUTPUT_NAMES
from albert_tf.tasks.masked_lm.task import SentenceOrder
from albert_tf.tasks.outputs import INTEGER, STRING, TensorSpec, as_bytes

# Rows and tokens that are computed at once, at most; the server merges requests itself.
_LARGEST_BATCH = 8192


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a model.

    Attributes:
        inputs, outputs: TensorSpecs by name. A signature without inputs returns constants.
    """

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class OnnxEngine:
    """`serving_default`, `tokenize`, `tokens`, and where they apply `labels` and `sentence_order`.

    The arguments are those of `load_onnx`, the attributes those of `albert_tf.serving.engine.Engine`.
    """

    lengths: Sequence[int] = ()

    def __init__(self, folder: pathlib.Path, engine: Any = "auto", precision: Any = "auto"):
        predictor = load_onnx(folder, engine, precision, _LARGEST_BATCH, _LARGEST_BATCH)
        config = AlbertConfig.from_json(folder / "config.json")
        self._predictor, self._config, self._task = predictor, config, predictor.text_task
        self.name, self.precision = predictor.network.name, predictor.network.precision
        self.reads_windows = self._task.reads_windows
        # In `tokens`, outputs have the names of the ONNX file.
        self._names = {ours: theirs for theirs, ours in OUTPUT_NAMES.get(predictor.task, {}).items()}
        settings = predictor.settings
        axes = 3 if settings.task == "multiple_choice" else 2
        sample = self._of_tokens(dict.fromkeys(INPUTS, np.ones((1,) * axes, np.int32)))
        ids = dict.fromkeys(INPUTS, TensorSpec(INTEGER, (None,) * axes))
        texts = {name: TensorSpec(STRING, (None,) * (1 + (name == "choices"))) for name in self._task.inputs}
        answers = self._task.specs(config.hidden_size)
        if self._names.get("pooled_output", "pooled_output") in sample:
            answers |= {"pooled_output": TensorSpec("float32", (None, config.hidden_size))}
        numbers = {name: TensorSpec(str(array.dtype), (None,) * array.ndim) for name, array in sample.items()}
        self.signatures = {
            "serving_default": Signature(texts, answers),
            "tokens": Signature(ids, numbers),
            "tokenize": Signature(texts, ids),
        }
        self._order = SentenceOrder(predictor.tokenizer, settings)
        if settings.task == "pretraining":
            pair = dict.fromkeys(self._order.inputs, TensorSpec(STRING, (None,)))
            self.signatures["sentence_order"] = Signature(pair, self._order.specs(config.hidden_size))
        self._labels: tuple[str, ...] = getattr(settings, "labels", None) or ()
        if self._labels:
            self.signatures["labels"] = Signature({}, {"labels": TensorSpec(STRING, (len(self._labels),))})

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature.

        Args:
            signature: a name in `signatures`.
            inputs: arrays by name, all with the same first dimension; strings are object arrays of UTF-8 bytes.

        Returns:
            Arrays by name, in the order of the rows; strings are object arrays of bytes.

        Raises:
            ValueError: the inputs are not those of the signature, or a row cannot be answered.
        """
        if signature == "labels":
            return {"labels": as_bytes(self._labels)}
        if signature == "tokens":
            return self._of_tokens(inputs)
        task = self._order if signature == "sentence_order" else self._task
        texts = [_texts_of(inputs[name]) for name in task.inputs]
        encoded = task.encode(*texts)
        if signature == "tokenize":
            inputs = encoded.batch(np.arange(len(encoded.lengths)), multiple=1)
            return {name: inputs[name].astype(np.int32) for name in INPUTS}
        task.check(encoded, *texts)
        return task.decode_arrays(encoded, self._predictor.compute(encoded, task.max_tokens))

    def _of_tokens(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The network's outputs for ids, which are checked, because not all engines do."""
        config = self._config
        limits = dict(zip(INPUTS, (config.vocab_size, 2, config.type_vocab_size)))
        for name, limit in limits.items():
            array = arrays[name]
            if array.shape != arrays[INPUTS[0]].shape or array.min() < 0 or array.max() >= limit:
                raise ValueError(f"`{name}` must be integers from 0 to {limit - 1}, of the shape of `input_ids`.")
        if arrays[INPUTS[0]].shape[-1] > config.max_position_embeddings:
            raise ValueError(
                f"`input_ids` must have at most {config.max_position_embeddings} columns. Received: "
                f"shape={arrays[INPUTS[0]].shape}."
            )
        outputs = self._predictor.network.compute(arrays)
        return {self._names.get(name, name): array for name, array in outputs.items()}


def _texts_of(array: np.ndarray) -> list[Any]:
    """Bytes [B] or [B, C] as texts."""
    if array.ndim > 1:
        return [_texts_of(row) for row in array]
    return [value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value for value in array]
