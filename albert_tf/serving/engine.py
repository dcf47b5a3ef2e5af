"""What computes the answers of a served model: TensorFlow, OpenVINO or ONNX Runtime, behind one interface."""

import dataclasses
from collections.abc import Mapping
from typing import Protocol

import numpy as np


@dataclasses.dataclass(frozen=True)
class TensorSpec:
    """An input or output of a signature.

    Attributes:
        dtype: `"string"`, `"int32"` or `"float32"`.
        shape: None for dimensions of any size; the first is the batch.
    """

    dtype: str
    shape: tuple[int | None, ...]


@dataclasses.dataclass(frozen=True)
class Signature:
    """A function of a model.

    Attributes:
        inputs, outputs: TensorSpecs by name. A signature without inputs returns constants.
    """

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]


class Engine(Protocol):
    """A loaded model; may be called from several threads."""

    @property
    def name(self) -> str:
        """`"tensorflow"`, `"openvino"` or `"onnxruntime"`."""
        ...

    @property
    def signatures(self) -> Mapping[str, Signature]:
        """The functions by name; `serving_default` takes raw text."""
        ...

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Calls a signature.

        Args:
            signature: a name in `signatures`.
            inputs: arrays by name, all with the same first dimension; strings are object arrays of UTF-8 bytes.

        Returns:
            Arrays by name, in the order of the rows; strings are object arrays of bytes.

        Raises:
            ValueError: a row cannot be answered, such as a text without `[MASK]`.
        """
        ...
