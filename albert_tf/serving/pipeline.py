"""From texts to predictions with the folder of any model: `albert_tf.pipeline`."""

import dataclasses
import functools
import itertools
import pathlib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from albert_tf import checkpoints, export
from albert_tf.data.finetuning.encoded import BYTES_PER_TOKEN, MAX_TOKENS, rows_by_length
from albert_tf.export.onnx_manifest import MANIFEST_FILE
from albert_tf.export.results import SAVED_MODEL_FILE, ExportedModel, newest_first
from albert_tf.files.hub import model_folder
from albert_tf.files.json import read_json
from albert_tf.progress import counted
from albert_tf.serving import onnx_engine
from albert_tf.serving.engine import Engine

EngineName = Literal["keras", "tensorflow", "onnxruntime", "openvino"]
Precision = Literal["float32", "bfloat16", "float16", "int8"]
# The function of `albert_tf.export` for each task, and its inputs.
_TASKS = {
    "sequence_classification": ("classify", ("text", "text_pair")),
    "token_classification": ("find_entities", ("text",)),
    "multiple_choice": ("choose", ("context", "choices")),
    "question_answering": ("answer_questions", ("question", "context")),
    "pretraining": ("fill_mask", ("text", "text_pair")),
    "masked_lm": ("fill_mask", ("text", "text_pair")),
    "sentence_embedding": ("embed", ("text",)),
}
_OPTIONAL, _CHOICES = "text_pair", "choices"
# Batches that are read and tokenized together, then sorted by their numbers of tokens: more leave less padding, fewer
# give the first results and show progress earlier.
_BATCHES_AT_ONCE = 32


def pipeline(
    model: str | pathlib.Path,
    *others: Any,
    engine: EngineName | None = None,
    precision: Precision | None = None,
    batch_size: int = 32,
) -> "Pipeline":
    """Loads a model that takes texts; its task is read from the folder.

    Args:
        model: a folder as for `albert_tf.export.load_folder`, or an export: a SavedModel, an ONNX folder, or the folder
            of its versions, of which the newest is loaded; or a name on the Hugging Face Hub.
            A SavedModel is a program: only load what you trust.
        engine: `"keras"` for weights, `"tensorflow"` for a SavedModel, `"onnxruntime"` or `"openvino"` for an ONNX
            folder. None: what the folder holds, weights first; OpenVINO, if it is installed, before onnxruntime.
        precision: data type of the computation: of weights `"float32"`, the default, or `"bfloat16"`; of an ONNX folder
            that of one of its files, by default the most exact one, or `"bfloat16"` for OpenVINO. That of a SavedModel
            is chosen when it is exported.
        batch_size: maximum number of texts that are computed at once; on CPUs and in exports also at most 1,024 tokens,
            which is faster than more.

    Returns:
        A Pipeline, to be called with texts.

    Raises:
        ValueError: there is no such model, it is damaged, or the engine cannot run it, or not in this precision.

    Example:

    ```python
    predictor = albert_tf.pipeline("runs/reviews")
    predictor("A fine film.").label
    [prediction.label for prediction in predictor(["A fine film.", "I fell asleep."])]
    ```
    """
    if others:
        raise ValueError(
            "`pipeline` takes the folder, which tells the task, and options by name. Received: "
            f"{', '.join(map(repr, (model, *others)))}; write albert_tf.pipeline(folder)."
        )
    if type(batch_size) is not int or batch_size < 1:
        raise ValueError(f"`batch_size` must be an integer of at least 1. Received: batch_size={batch_size!r}.")
    return Pipeline(load_model(model, engine, batch_size, precision), batch_size)


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A model that takes texts.

    Attributes:
        model: see `load_model`.
        batch_size: maximum number of texts that are computed at once.
    """

    model: Any
    batch_size: int

    @property
    def task(self) -> str:
        """Name of a row of `albert_tf.tasks.TASKS`."""
        return self.model.task

    def __repr__(self) -> str:
        return f"<Pipeline task={self.task} engine={self.model.engine} batch_size={self.batch_size}>"

    def __call__(self, *texts: Any, **named: Any) -> Any:
        """Predicts; inputs and results depend on the task.

        | task | inputs | each result | as of |
        |---|---|---|---|
        | classifier | `text`, of pairs also `text_pair` | ClassPrediction | `classify` |
        | question answering | `question`, `context` | AnswerPrediction | `answer_questions` |
        | token classification | `text` | list of Entity | `find_entities` |
        | multiple choice | `context`, `choices` | array of probabilities | `choose` |
        | sentence embeddings | `text` | array | `embed` |
        | masked LM, pretrained | `text` with [MASK] | tuple of MaskPrediction | `fill_mask` |
        | pretrained | `text`, `text_pair` | probability that `text` comes first | `sentence_order` |

        Args:
            *texts: the inputs in this order; or a DataFrame or dict that has them as columns.
            **named: the inputs by name. Each is a text, or several: a list, an array, a pandas Series or an iterator.
                `choices` are a list of texts for each context.

        Returns:
            The result for one text, a list of results for several, in their order, and for an iterator an iterator,
            which reads a few batches at a time.

        Raises:
            ValueError: the inputs do not fit the model, or something is not a text.
        """
        columns = self._columns(texts, named)
        names, first = tuple(columns), next(iter(columns.values()))
        if isinstance(first, str):
            columns = {name: [column] for name, column in columns.items()}
        rows = (_checked(number, names, row) for number, row in enumerate(_rows(columns)))
        if any(isinstance(column, Iterator) for column in columns.values()):
            return self._stream(names, rows)
        found = self._answer(names, list(rows))
        return found[0] if isinstance(first, str) else found

    def _columns(self, texts: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name, in their order."""
        names = _TASKS[self.task][1]
        given, count = {**dict(zip(names, texts)), **named}, len(texts) + len(named)
        if count == 1 and texts and (isinstance(texts[0], Mapping) or hasattr(texts[0], "columns")):
            known = getattr(texts[0], "columns", texts[0])
            given, count = {name: texts[0][name] for name in names if name in known}, 0
        is_complete = all(name in given for name in names if name != _OPTIONAL)
        if not is_complete or len(given) < count or not given.keys() <= set(names):
            raise ValueError(
                f"A model of {self.task.replace('_', ' ')} takes {' and '.join(names)}. Received: "
                f"{', '.join([*map(repr, texts), *named])[:100] or 'none of them'}."
            )
        columns = {name: given[name] for name in names if name in given}
        return {name: column.tolist() if hasattr(column, "tolist") else column for name, column in columns.items()}

    def _stream(self, names: Sequence[str], rows: Iterator[tuple]) -> Iterator[Any]:
        while part := list(itertools.islice(rows, _BATCHES_AT_ONCE * self.batch_size)):
            yield from self._answer(names, part)

    def _answer(self, names: Sequence[str], rows: Sequence[tuple]) -> list[Any]:
        """The results of all rows, computed in batches of similar length."""
        function, (first, *_) = _TASKS[self.task]
        is_order = function == "fill_mask" and names != (first,)
        answer = getattr(self.model, "sentence_order" if is_order else function)
        num_choices = np.array([_num_choices(row) for row in rows])
        lengths = np.array([_num_characters(row) for row in rows])
        limits = _BATCHES_AT_ONCE * self.batch_size, _BATCHES_AT_ONCE * BYTES_PER_TOKEN * MAX_TOKENS
        found: list[Any] = [None] * len(rows)
        for count in np.unique(num_choices):
            alike = np.flatnonzero(num_choices == count)
            for part in counted(rows_by_length(lengths[alike], *limits)):
                results = answer(*zip(*(rows[row] for row in alike[part])))
                for row, result in zip(alike[part], results, strict=True):
                    found[row] = result
        return found


def _rows(columns: Mapping[str, Any]) -> Iterator[tuple]:
    for name, column in columns.items():
        if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
            raise ValueError(f"`{name}` must be a text, or for several rows a list. Received: {str(column)[:60]!r}.")
    sizes = {name: len(column) for name, column in columns.items() if hasattr(column, "__len__")}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"All inputs must have equal numbers of rows. Received: {sizes}.")
    return zip(*columns.values(), strict=True)


def _checked(number: int, names: Sequence[str], row: tuple) -> tuple:
    for name, value in zip(names, row):
        texts = value if name == _CHOICES and isinstance(value, list | tuple) else [value]
        if not texts or not all(isinstance(text, str) for text in texts) or (name == _CHOICES) != (texts is value):
            expected = "a list of texts" if name == _CHOICES else "a text"
            raise ValueError(f"Row {number} of `{name}` must be {expected}. Received: {str(value)[:60]!r}.")
    return row


def _num_choices(row: tuple) -> int:
    return sum(len(value) for value in row if not isinstance(value, str))


def _num_characters(row: tuple) -> int:
    return sum(len("".join(value)) for value in row)  # of a text or of choices


class _EngineModel(ExportedModel):
    def __init__(self, folder: pathlib.Path, engine: Engine, batch_size: int):
        if "serving_default" not in engine.signatures:
            raise ValueError(
                f"{folder} does not take texts, like modules for TF Hub; export it with --format saved_model."
            )
        self.folder, self.engine, self.batch_size, self._loaded = folder, engine.name, batch_size, engine
        self.makes_batches = isinstance(engine, onnx_engine.OnnxEngine)
        card = folder / MANIFEST_FILE
        self.problem = read_json(card).get("problem", "") if card.is_file() else ""

    def signatures(self):
        return {name: (signature.inputs, signature.outputs) for name, signature in self._loaded.signatures.items()}

    def run(self, signature, arrays):
        return self._loaded.run(signature, arrays)


def load_model(
    model: str | pathlib.Path,
    engine: EngineName | None = None,
    batch_size: int = 32,
    precision: Precision | None = None,
) -> Any:
    """Loads a model with what computes it; arguments are those of `pipeline`.

    Returns:
        An object with `task`, `engine`, `problem`, and as methods the functions of `albert_tf.export` that predict,
        without their first argument.
    """
    if engine not in (None, *get_args(EngineName)):
        raise ValueError(f"`engine` must be one of {', '.join(get_args(EngineName))}. Received: engine={engine!r}.")
    if precision not in (None, *get_args(Precision)):
        raise ValueError(
            f"`precision` must be one of {', '.join(get_args(Precision))}. Received: precision={precision!r}."
        )
    folder = pathlib.Path(model) if engine not in (None, "keras") else model_folder(model)
    try:
        if engine == "keras" or (engine is None and checkpoints.holds_weights(folder)):
            return _load_keras(folder, batch_size, precision)
        for version in newest_first(folder):
            if engine != "tensorflow" and onnx_engine.is_onnx_folder(version):
                loaded = onnx_engine.load(version, engine or "auto", precision or "auto", batch_size, MAX_TOKENS)
                return _EngineModel(version, loaded, batch_size)
            if engine in (None, "tensorflow") and (version / SAVED_MODEL_FILE).is_file():
                from albert_tf.serving import tensorflow_engine  # commands hide what TensorFlow logs in its import

                return _EngineModel(version, tensorflow_engine.load(version, precision=precision or "auto"), batch_size)
        if engine is None:
            return _load_keras(folder, batch_size, precision)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed, which {folder} needs; install albert-tf with its requirements, or export "
            "the model with --format onnx."
        ) from None
    kind = "SavedModel" if engine == "tensorflow" else "ONNX folder"
    raise ValueError(f"{folder} holds no {kind}; write one with `albert-tf export`, or choose another engine.")


def _load_keras(model: str | pathlib.Path, batch_size: int, precision: Precision | None) -> Any:
    if precision not in (None, "float32", "bfloat16"):
        raise ValueError(
            f"Weights are computed in float32 or bfloat16. Received: precision={precision!r}; export them with "
            "--format onnx for others."
        )
    loaded = dataclasses.replace(export.load_folder(model, precision), batch_size=batch_size)
    names = {"sentence_order", *(name for name, _ in _TASKS.values())}
    functions = {name: functools.partial(getattr(export, name), loaded) for name in names}
    problem = getattr(loaded.model, "problem", "")
    return types.SimpleNamespace(task=loaded.task, engine="keras", problem=problem, **functions)
