"""`model.json` of an exported ONNX folder: what a program needs to know to turn text into answers."""

import json
import pathlib
from typing import Any, Literal

import pydantic

from albert_tf.atomic_files import atomic_write
from albert_tf.json_files import read_json, verify_checksum, with_checksum

MANIFEST_FILE = "model.json"
# The names that transformers.js knows, in the subfolder where it looks.
MODEL_FILES = {
    "float32": "onnx/model.onnx",
    "float16": "onnx/model_fp16.onnx",
    "int8": "onnx/model_quantized.onnx",
}
_CURE = "export the model again"


class OnnxManifest(pydantic.BaseModel):
    """The task of an exported model and its options.

    Attributes:
        task: name of a row of `albert_tf.tasks.TASKS`.
        max_length: maximum number of ids of a row.
        labels: class names in order of their ids.
        problem: of a classifier of texts.
        takes_pairs: whether a classifier of texts takes pairs.
        normalize: whether sentence embeddings have length 1.
        doc_stride, max_question_length, max_answer_length: as in fine-tuning; None if they are not known.
        no_answer_threshold: a question is not answered if its score of "no answer" reaches this; None: all are.
        files: SHA-256 of each ONNX file by its path.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    task: str
    max_length: int = pydantic.Field(ge=3)
    labels: tuple[str, ...] = ()
    problem: Literal["classification", "multi_label", "regression"] = "classification"
    takes_pairs: bool = False
    normalize: bool = False
    doc_stride: int | None = pydantic.Field(default=None, ge=1)
    max_question_length: int | None = pydantic.Field(default=None, ge=1)
    max_answer_length: int | None = pydantic.Field(default=None, ge=1)
    no_answer_threshold: float | None = None
    files: dict[str, str] = {}

    @classmethod
    def checked(cls, source: pathlib.Path, **values: Any) -> "OnnxManifest":
        """A manifest of values from a file; raises ValueError, naming it, if one has a wrong type."""
        try:
            return cls(**values)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            name, received = ".".join(map(str, first["loc"])), str(first["input"])[:60]
            raise ValueError(f"{source}: `{name}`: {first['msg']}. Received: {received}; restore the file.") from None

    def write(self, folder: pathlib.Path) -> None:
        """Writes the file, with a checksum."""
        content = with_checksum(self.model_dump(mode="json"))
        atomic_write(folder / MANIFEST_FILE, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    @classmethod
    def read(cls, folder: pathlib.Path) -> "OnnxManifest":
        """Reads the file; raises ValueError if it is missing, damaged or changed."""
        file = folder / MANIFEST_FILE
        return cls.checked(file, **verify_checksum(read_json(file, cure=_CURE), file, _CURE))
