"""`model.json` of an exported ONNX folder: what a program needs to know to turn text into answers."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from albert_tf.files.atomic import sha256, write_json
from albert_tf.files.json import read_json, verify_checksum, with_checksum

MANIFEST_FILE = "model.json"
# The names that transformers.js knows, in the subfolder where it looks.
MODEL_FILES = {
    "float32": "onnx/model.onnx",
    "float16": "onnx/model_fp16.onnx",
    "int8": "onnx/model_quantized.onnx",
}
# The inputs of the files; the beam head also takes `P_MASK`, which is 1 where no answer can start or end.
INPUTS: tuple[str, ...] = ("input_ids", "attention_mask", "token_type_ids")
P_MASK = "p_mask"
_CURE = "export the model again"


@dataclasses.dataclass(frozen=True)
class OnnxManifest:
    """The task of an exported model and its options.

    Attributes:
        task: name of a row of `albert_tf.tasks.TASKS`.
        max_length: maximum number of ids of a row.
        labels: class names in order of their ids.
        problem: of a classifier of texts, as in AlbertForSequenceClassification.
        takes_pairs: whether a classifier of texts takes pairs.
        normalize: whether sentence embeddings have length 1.
        doc_stride, max_question_length, max_answer_length: as in fine-tuning; None if they are not known.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this; None: all are.
        tags_words: whether tags were trained on words, not on spans of characters.
        files: `bytes` and `sha256` of each file by its path; `write` finds them.

    Raises:
        ValueError: a value has a wrong type.
    """

    task: str
    max_length: int
    labels: tuple[str, ...] = ()
    problem: str = "classification"
    takes_pairs: bool = False
    normalize: bool = False
    doc_stride: int | None = None
    max_question_length: int | None = None
    max_answer_length: int | None = None
    no_answer_threshold: float | None = None
    tags_words: bool = False
    files: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_valid, expected = _CHECKS[field.name]
            if not is_valid(value):
                raise ValueError(f"`{field.name}` must be {expected}. Received: {str(value)[:60]}.")

    def write(self, folder: pathlib.Path) -> None:
        """Writes the file, with a checksum, once all other files are there."""
        shared = shared_entries(folder, self.task, self.max_length, self.labels)
        content = with_checksum({**dataclasses.asdict(self), **shared})
        write_json(folder / MANIFEST_FILE, content, ensure_ascii=False)

    @classmethod
    def read(cls, folder: pathlib.Path) -> "OnnxManifest":
        """Reads the file; raises ValueError if it is missing, damaged or changed."""
        file = folder / MANIFEST_FILE
        values = verify_checksum(read_json(file, cure=_CURE), file, _CURE)
        try:
            return cls(**{**values, "labels": tuple(values.get("labels", ()))})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{file}: {error} {_CURE[:1].upper()}{_CURE[1:]}.") from None


def shared_entries(folder: pathlib.Path, task: str, max_length: int, labels: Sequence[str]) -> dict[str, Any]:
    """What `model.json` says of every export, whatever its format."""
    files = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return {"task": task, "max_length": max_length, "labels": list(labels), "files": files}


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 1)


def _are_files(value: Any) -> bool:
    files = value.values() if isinstance(value, Mapping) else [None]
    return all(isinstance(file, Mapping) and _is_string(file.get("sha256")) for file in files)


_CHECKS = {
    "task": (_is_string, "a string"),
    "max_length": (lambda value: type(value) is int and value >= 3, "an integer of at least 3"),
    "labels": (lambda value: isinstance(value, tuple) and all(map(_is_string, value)), "a list of strings"),
    "problem": (_is_string, "a string"),
    **dict.fromkeys(
        ("takes_pairs", "tags_words", "normalize"), (lambda value: isinstance(value, bool), "true or false")
    ),
    **dict.fromkeys(
        ("doc_stride", "max_question_length", "max_answer_length"), (_is_count, "an integer of at least 1, or null")
    ),
    "no_answer_threshold": (lambda value: value is None or type(value) in (int, float), "a number or null"),
    "files": (_are_files, "an object with the `sha256` of each file"),
}
