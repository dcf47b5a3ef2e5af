"""From texts to predictions with the folder of any model: `albert_tf.pipeline`."""

import dataclasses
import itertools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from albert_tf.data.finetuning.encoded import BYTES_PER_TOKEN, MAX_TOKENS, rows_by_length
from albert_tf.data.finetuning.text_counts import TextCounts, count_texts, report, report_together
from albert_tf.inference.loading import EngineName, Precision, load_model
from albert_tf.inference.predictor import Predictor
from albert_tf.inference.progress import counted
from albert_tf.tasks.base import TextTask
from albert_tf.tasks.masked_lm.task import MaskedInTurn, MaskedLM, SentenceOrder
from albert_tf.tasks.sequence_classification.settings import Threshold
from albert_tf.tasks.table import WindowsName

_OPTIONAL, _CHOICES = "text_pair", "choices"
_MASKED = ("masked_lm", "pretraining")
# Batches that are read and tokenized together, then sorted by their numbers of tokens: more leave less padding, fewer
# give the first results and show progress earlier.
_BATCHES_AT_ONCE = 32


def pipeline(
    model: str | pathlib.Path,
    *others: Any,
    engine: EngineName | None = None,
    precision: Precision | None = None,
    batch_size: int = 32,
    threshold: Threshold | None = None,
    windows: WindowsName | None = None,
) -> "Pipeline":
    """Loads a model that takes texts; its task is read from the folder.

    Args:
        model: a checkpoint of any format with its vocabulary, such as a folder of `finetune`, `pretrain` or Hugging
            Face transformers; an export: a SavedModel, an ONNX folder, or the folder of its versions, of which the
            newest is loaded; or a name on the Hugging Face Hub. A SavedModel is a program: only load what you trust.
        engine: `"keras"` for weights, `"tensorflow"` for a SavedModel, `"onnxruntime"` or `"openvino"` for an ONNX
            folder. None: what the folder holds, weights first; OpenVINO, if it is installed, before onnxruntime.
        precision: data type of the computation: of weights `"float32"`, the default, or `"bfloat16"`; of an ONNX folder
            that of one of its files, by default the most exact one, or `"bfloat16"` for OpenVINO. That of a SavedModel
            is chosen when it is exported.
        batch_size: maximum number of texts that are computed at once; on CPUs and in exports also at most 1,024 tokens,
            which is faster than more.
        threshold: where a text may have any number of labels, it has those with probabilities above this: a number, or
            numbers by label. None: that of its fine-tuning, otherwise 0.5.
        windows: for labels and numbers of single texts, read long ones in overlapping windows, and join the logits of
            these by their `"mean"` or `"max"`. None: as the model was trained or exported.

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
    loaded, changes = load_model(model, engine, precision, batch_size), {"threshold": threshold, "windows": windows}
    changes = {name: value for name, value in changes.items() if value is not None}
    return Pipeline(loaded.changed(**changes) if changes else loaded)


@dataclasses.dataclass(frozen=True)
class Pipeline:
    """A model that takes texts.

    Attributes:
        model: what computes the predictions, with its `tokenizer`, its `settings` and its `network`.
    """

    model: Predictor

    @property
    def task(self) -> str:
        """Name of a row of `albert_tf.tasks.table.TASKS`."""
        return self.model.task

    def __repr__(self) -> str:
        return f"<Pipeline task={self.task} engine={self.model.network.name} batch_size={self.model.batch_size}>"

    def __call__(self, *texts: Any, top: int | None = None, targets: Sequence[str] | None = None, **named: Any) -> Any:
        """Predicts; inputs and results depend on the task.

        | task | inputs | each result |
        |---|---|---|
        | classifier | `text`, of pairs also `text_pair` | ClassPrediction, or LabelsPrediction |
        | question answering | `question`, `context` | AnswerPrediction |
        | token classification | `text` | list of Entity |
        | multiple choice | `context`, `choices` | probabilities, float32 [C] |
        | sentence embeddings | `text` | float32 [D] |
        | masked LM, pretrained | `text` with [MASK] for one piece | tuple of MaskPrediction, one for each [MASK] |
        | pretrained | `text`, `text_pair` | probability that `text` precedes its pair, not follows it |

        Args:
            *texts: the inputs in this order; or a DataFrame or dict that has them as columns.
            **named: the inputs by name. Each is a text, or several: a list, an array, a pandas Series or an iterator.
                `choices` are a list of texts for each context.
            top: number of candidates for [MASK]; None: 5.
            targets: words that are the only candidates; of one of several pieces, the first counts, with a warning.
                Probabilities remain those among all pieces.

        Returns:
            The result for one text, a list of results for several, in their order, and for an iterator an iterator,
            which reads a few batches at a time.

        Raises:
            ValueError: the inputs do not fit the model, or something is not a text.

        Warns:
            UserWarning: parts of texts were left out, or texts have no tokens; once for all texts of a call.
        """
        columns = self._columns(texts, named)
        names, first = tuple(columns), next(iter(columns.values()))
        options = {name: value for name, value in (("top", top), ("targets", targets)) if value is not None}
        if options and (self.task not in _MASKED or _OPTIONAL in names):
            raise ValueError(f"`{next(iter(options))}` must be left out unless pieces for [MASK] are predicted.")
        task, arguments = self.model.text_task, (self.model.tokenizer, self.model.settings)
        if self.task in _MASKED:
            task = SentenceOrder(*arguments) if _OPTIONAL in names else MaskedLM(*arguments, **{"top": 5, **options})
        if isinstance(first, str):
            columns = {name: [column] for name, column in columns.items()}
        rows = (_checked(number, names, row) for number, row in enumerate(_rows(columns)))
        if any(isinstance(column, Iterator) for column in columns.values()):
            return self._stream(task, rows)
        predictions = self._answer(task, list(rows))
        return predictions[0] if isinstance(first, str) else predictions

    def pseudo_log_likelihood(self, texts: Sequence[str]) -> list[float]:
        """How likely texts are: the sum of the log probabilities of their tokens, each masked in turn.

        Args:
            texts: B texts.

        Returns:
            B sums, in nats.

        Raises:
            ValueError: the model has no masked-LM head, or a text has no tokens, or more than the model takes.

        References:
            Masked Language Model Scoring, arXiv 1910.14659.
        """
        if self.task not in _MASKED:
            kind = self.task.replace("_", " ")
            raise ValueError(f"The model must have a masked-LM head. Received: one of {kind}; use a pretrained model.")
        if not len(texts):
            return []
        rows = MaskedInTurn(self.model.tokenizer, texts, self.model.text_task.max_length)
        return rows.sums(self.model.compute(rows, MaskedLM.max_tokens))

    def _columns(self, texts: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs by name, in their order."""
        names = self._input_names()
        inputs, count = {**dict(zip(names, texts)), **named}, len(texts) + len(named)
        if count == 1 and texts and (isinstance(texts[0], Mapping) or hasattr(texts[0], "columns")):
            known = getattr(texts[0], "columns", texts[0])
            inputs, count = {name: texts[0][name] for name in names if name in known}, 0
        is_complete = all(name in inputs for name in names if name != _OPTIONAL)
        if not is_complete or len(inputs) < count or not inputs.keys() <= set(names):
            received = ", ".join([*map(_described, texts), *named])[:200] or "none of them"
            cure = "; give one of its columns, such as table[name]" if any(hasattr(a, "columns") for a in texts) else ""
            raise ValueError(
                f"A model of {self.task.replace('_', ' ')} takes {' and '.join(names)}. Received: {received}{cure}."
            )
        columns = {name: inputs[name] for name in names if name in inputs}
        return {name: column.tolist() if hasattr(column, "tolist") else column for name, column in columns.items()}

    def _input_names(self) -> tuple[str, ...]:
        """What the task takes, the second text of a pair last, which need not be given."""
        names = self.model.text_task.inputs
        takes_pairs = self.task in ("sequence_classification", "pretraining")
        return (*names, _OPTIONAL) if takes_pairs and _OPTIONAL not in names else names

    def _stream(self, task: TextTask, rows: Iterator[tuple]) -> Iterator[Any]:
        total = TextCounts()
        while part := list(itertools.islice(rows, _BATCHES_AT_ONCE * self.model.batch_size)):
            with count_texts() as counts:
                answers = self._answer(task, part)
            total.add(counts)
            yield from answers
        report(total)

    @report_together()
    def _answer(self, task: TextTask, rows: Sequence[tuple]) -> list[Any]:
        """The results of all rows, computed in batches of similar length."""
        num_choices = np.array([_num_choices(row) for row in rows])
        lengths = np.array([_num_characters(row) for row in rows])
        limits = _BATCHES_AT_ONCE * self.model.batch_size, _BATCHES_AT_ONCE * BYTES_PER_TOKEN * MAX_TOKENS
        predictions: list[Any] = [None] * len(rows)
        for count in np.unique(num_choices):
            alike = np.flatnonzero(num_choices == count)
            for part in counted(rows_by_length(lengths[alike], *limits)):
                results = self.model.predict(*zip(*(rows[row] for row in alike[part])), task=task)
                for row, result in zip(alike[part], results, strict=True):
                    predictions[row] = result
        return predictions


def _described(value: Any) -> str:
    columns = getattr(value, "columns", None)
    if columns is None:
        return repr(value)[:100]
    return f"a {type(value).__name__} with the columns {', '.join(map(repr, columns))}"


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
