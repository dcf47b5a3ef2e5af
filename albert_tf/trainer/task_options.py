"""The options of fine-tuning: the task and its files, and the run."""

import pathlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic_core import PydanticCustomError

from albert_tf.config import Share
from albert_tf.data.finetuning.classification import Columns
from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.inference.settings import is_threshold
from albert_tf.tasks import Objective, Pooling, WindowsName
from albert_tf.trainer.optimizer_recipe import LearningRateRules
from albert_tf.trainer.recipe import Count, DtypePolicy, Remat, Strategy

TaskName = Literal[
    "sequence_classification",
    "token_classification",
    "multiple_choice",
    "question_answering",
    "question_answering_beam",
    "sentence_embedding",
]


def _as_file(data: Any, info: pydantic.ValidationInfo) -> Any:
    names = ("header", "encoding", "delimiter")
    table = TableFormat(**{name: info.data[name] for name in names if name in info.data})
    return str(as_file(data, info.field_name or "dev", table))  # in JSON, paths are strings


def _start(path: Any) -> Any:
    if path is None:  # nor is there a teacher
        raise PydanticCustomError("missing", "Field required")
    return str(path) if isinstance(path, pathlib.PurePath) else path  # in JSON, paths are strings


Examples = Annotated[pathlib.Path, pydantic.BeforeValidator(_as_file)]
Start = Annotated[pathlib.Path, pydantic.BeforeValidator(_start)]

_QUESTIONS = ("question_answering", "question_answering_beam")
_TABLES = ("sequence_classification", "sentence_embedding")
# The tasks that read an option; the others refuse it.
_READ_BY = {
    **dict.fromkeys(("text_column", "pair_column", "label_column", "header"), _TABLES),
    "ragged_rows": (*_TABLES, "multiple_choice"),
    "labels": ("sequence_classification", "token_classification"),
    **dict.fromkeys(("problem", "label_separator", "label_columns", "threshold"), ("sequence_classification",)),
    **dict.fromkeys(("max_answer_length", "no_answer_threshold", "num_candidates"), _QUESTIONS),
    **dict.fromkeys(("scorer", "misplaced_answers"), _QUESTIONS),
    "max_question_length": (*_QUESTIONS, "multiple_choice"),
    "doc_stride": (*_QUESTIONS, "token_classification", "sequence_classification"),
    "windows": ("sequence_classification",),
    "tag_words": ("token_classification",),
    "positive_label": _TABLES,
    **dict.fromkeys(("objective", "negative_column", "largest_label"), ("sentence_embedding",)),
    **dict.fromkeys(("dev_label_column", "normalize", "pooling"), ("sentence_embedding",)),
}


def check_read(task: str, given: Mapping[str, Any]) -> None:
    """Raises ValueError if an option is given that the task does not read."""
    for name, value in given.items():
        if task not in _READ_BY.get(name, (task,)):
            raise ValueError(
                f"`{name}` must be left out for the task {task!r}, which does not read it. Received: {name}={value!r}."
            )


class TaskOptions(pydantic.BaseModel):
    """What a task reads and predicts.

    Args:
        task: name of a row of `albert_tf.tasks.TASKS`.
        text_column, pair_column, label_column: columns of tables; `pair_column` is for pairs of texts.
        label_columns: where a text may have any number of labels, columns with 1 for those that it has and 0 for the
            others, which are named like the labels; instead of `label_column`.
        rename_columns: new names of columns by their names in the data, for all tasks, such as `{"frage": "question"}`.
        header: whether the first row of a table names the columns; otherwise columns are numbers from 0.
        encoding: of text files, such as `"cp949"`. None: UTF-8, or UTF-16 with a byte-order mark. It counts, as
            `delimiter` does, for the files of this run alone.
        delimiter: between the fields of a table, such as `";"`; None: by the header, see TableFormat.
        ragged_rows: what to do with rows of a table that have more or fewer fields than its header, or questions with
            another number of choices than most: `"refuse"` the file, or `"drop"` the rows with a warning.
        problem: `"classification"`, `"multi_label"` if a text may have any number of labels, or `"regression"` if
            labels are numbers, such as ranks.
        label_separator: between the labels of a text in a table; in JSON they may also be a list.
        threshold: where a text may have any number of labels, it has those with probabilities above this: a number, or
            numbers by label, 0.5 for the others. None: the number with the best F1 of all decisions on `dev`.
            `"per_label"`: for each label that with its best F1; labels of few texts get that of all.
        labels: class names in order of their ids. None: the labels in the training examples, sorted.
        main_score: for texts, the score that decides which weights are kept. None: accuracy, F1 of all decisions, or
            Pearson's correlation.
        max_length: maximum number of ids; longer texts are truncated, longer passages are split into windows. None: the
            model's maximum.
        windows: for labels and numbers of single texts, split longer ones into windows, too. Each is trained on as a
            text with the same label; to predict, the logits of the windows of a text are joined by their `"mean"`, or
            by their `"max"`, which suits several labels per text. None: the ends of longer texts are left out.
        doc_stride: distance in tokens of the starts of two windows of a text or passage. None: 128, or a third of
            `max_length` if that is less.
        max_question_length: longer questions are cut to this number of ids, by default 64, or half of `max_length` if
            that is less; in multiple choice, only the last ids of a question with its choice are kept, by default 128.
        max_answer_length: maximum number of tokens of an answer.
        objective: for sentence embeddings, what is minimised: `"similarity"` for pairs with numbers, `"ranking"` for
            pairs of similar sentences, or `"triplet"`; see AlbertForSentenceEmbedding. With `"ranking"` on several
            devices, each compares its own part of a batch.
        negative_column: column of sentences that differ from the others of their row.
        positive_label: of two labels of texts, the one that F1 is of; None: the second. For sentence embeddings with
            `"ranking"` or `"triplet"`, label of the rows to train on, if the others are not similar.
        largest_label: labels to train on are similarities from 0 to this number.
        dev_label_column: column of similarities to evaluate on. None: `label_column`.
        normalize: whether embeddings have length 1. None: as in the pretrained model, by default not.
        pooling: `"mean"`, `"cls"`, `"max"` or `"mean_sqrt_len"`, see AlbertForSentenceEmbedding. None: as in the
            pretrained model, by default the mean.
        scorer: `"squad"`, or `"korquad"`, whose F1 counts characters, for questions that all have answers.
        no_answer_threshold: a question is not answered if its score of "no answer" is above this. None: above the
            threshold that gives the best F1 on the questions that are evaluated.
        num_candidates: answers to a question that are written with their probabilities.
        tag_words: whether to tag words, not tokens, in texts whose words are not given, as a model needs that was
            trained on words. None: if all training texts consist of words. `evaluate` and `predict` do as `finetune`
            did.
        misplaced_answers: what to do if an answer is not in its passage: `"refuse"` the file, or `"drop"` the answer
            from training.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    task: TaskName = "sequence_classification"
    text_column: str = "text"
    pair_column: str | None = None
    label_column: str = "label"
    label_columns: tuple[str, ...] = ()
    rename_columns: dict[str, str] = pydantic.Field(default_factory=dict)
    header: bool = True
    encoding: str | None = None
    delimiter: str | None = None
    ragged_rows: Literal["refuse", "drop"] = "refuse"
    problem: Literal["classification", "multi_label", "regression"] = "classification"
    label_separator: str = pydantic.Field(default=",", min_length=1)
    threshold: float | dict[str, float] | Literal["per_label"] | None = None
    labels: tuple[str, ...] | None = None
    main_score: (
        Literal["accuracy", "f1", "f1_macro", "f1_micro", "exact_match", "matthews", "pearson", "spearman"] | None
    ) = None
    max_length: int | None = pydantic.Field(default=None, ge=3)
    windows: WindowsName | None = None
    doc_stride: int | None = pydantic.Field(default=None, ge=1)
    max_question_length: int | None = pydantic.Field(default=None, ge=1)
    max_answer_length: int = pydantic.Field(default=30, ge=1)
    no_answer_threshold: float | None = None
    num_candidates: int = pydantic.Field(default=20, ge=1)
    objective: Objective = "similarity"
    negative_column: str | None = None
    positive_label: str | None = None
    largest_label: float = pydantic.Field(default=1.0, gt=0)
    dev_label_column: str | None = None
    normalize: bool | None = None
    pooling: Pooling | None = None
    scorer: Literal["squad", "korquad"] = "squad"
    tag_words: bool | None = None
    misplaced_answers: Literal["refuse", "drop"] = "refuse"

    @pydantic.field_validator("threshold", mode="before")
    @classmethod
    def _check_threshold(cls, value):
        if value not in (None, "per_label") and not is_threshold(value):
            raise ValueError(
                "`threshold` must be a number from 0 to 1, such numbers by label, or 'per_label'. Received: "
                f"threshold={value!r}."
            )
        return value

    @pydantic.model_validator(mode="after")
    def _check_main_score(self):
        if self.task == "sentence_embedding":
            if self.main_score not in (None, "pearson", "spearman"):
                raise ValueError(
                    "`main_score` must be 'spearman' or 'pearson' for sentence embeddings. Received: "
                    f"main_score={self.main_score!r}."
                )
        elif self.main_score is not None and self.task != "sequence_classification":
            raise ValueError(
                f"`main_score` must not be given for the task {self.task!r}, which has one main score. Received: "
                f"main_score={self.main_score!r}."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _check_unused(self):
        if self.labels is not None and self.problem == "regression":
            raise ValueError(f"`labels` must be None where a number is predicted. Received: labels={self.labels}.")
        if self.windows is not None and self.pair_column is not None:
            raise ValueError(
                f"`windows` must be left out for pairs of texts, whose ends are left out. Received: windows="
                f"{self.windows!r}, pair_column={self.pair_column!r}."
            )
        if self.doc_stride is not None and self.windows is None and self.task == "sequence_classification":
            raise ValueError(
                "`doc_stride` must be left out without `windows`, whose starts it is the distance of. Received: "
                f"doc_stride={self.doc_stride}."
            )
        if self.label_columns and self.problem != "multi_label" and self.task == "sequence_classification":
            raise ValueError(
                "`label_columns` must be left out unless problem='multi_label'. Received: label_columns="
                f"{self.label_columns}."
            )
        if self.label_columns and (
            self.label_column != "label" or len(set(self.label_columns)) < len(self.label_columns)
        ):
            raise ValueError(
                "`label_columns` must name different columns, instead of `label_column`. Received: label_columns="
                f"{self.label_columns}, label_column={self.label_column!r}."
            )
        for name in ("negative_column", "positive_label"):
            is_used = self.objective != "similarity" or self.task != "sentence_embedding"
            if getattr(self, name) is not None and not is_used:
                raise ValueError(
                    f"`{name}` must be None with objective='similarity', which does not use it; 'ranking' and "
                    f"'triplet' do. Received: {name}={getattr(self, name)!r}."
                )
        return self

    @pydantic.model_validator(mode="after")
    def _check_positive_label(self):
        if self.positive_label is not None and self.problem != "classification":
            raise ValueError(
                f"`positive_label` must be None with problem={self.problem!r}, whose scores are of all labels. "
                f"Received: positive_label={self.positive_label!r}."
            )
        return self

    @property
    def columns(self) -> Columns:
        """The columns to read from tables."""
        separator = self.label_separator if self.problem == "multi_label" else None
        return Columns(self.text_column, self.pair_column, self.label_column, separator, self.label_columns)

    @property
    def table(self) -> TableFormat:
        """How files are read."""
        is_ragged = self.ragged_rows == "drop"
        return TableFormat(self.header, is_ragged, self.encoding, self.delimiter, self.rename_columns)


class FinetuneOptions(TaskOptions):
    """One fine-tuning run.

    The defaults suit a few thousand examples. The largest models need lower learning rates (1e-5), very small ones more
    epochs.

    Args:
        teacher: folder of a model that was fine-tuned for the same task, labels and vocabulary. The model also imitates
            its outputs and hidden states, see `albert_tf.models.distillation`; best with fewer layer calls.
        pretrained: folder with a checkpoint of any format and its vocabulary. With a teacher, by default the teacher.
        train: training examples; see the guide to data for the formats. A file, a folder or a URL, a pandas or polars
            DataFrame, a Dataset or DatasetDict of Hugging Face, or an iterable of dicts.
        dev: examples to evaluate on, likewise.
        output: folder to write.
        add_tokens: file of tokens to add to the vocabulary, one a line, such as markers or the words of a domain.
        num_hidden_layers: number of calls of the shared block, fewer for speed. None: the pretrained model's.
        from_scratch: use only config and vocabulary of `pretrained`, not its weights, as a baseline.
        epochs: passes over `train`.
        batch_size: texts, or windows of long texts and passages, per update.
        gradient_accumulation_steps: number of parts of a batch that are computed one after the other.
        learning_rate: the peak, followed by linear decay to 0. None: 3e-5, or 1e-3 for models with a `hidden_size`
            below 512.
        warmup_proportion: fraction of all updates for linear warm-up.
        dropout: of hidden states and attention. None: the pretrained model's.
        head_dropout: of the head's input, `classifier_dropout_prob`, where the head has one. None: the pretrained
            model's, which is 0.1 unless its config says otherwise.
        weight_decay: biases and layer normalisation are excluded.
        learning_rate_rules: pairs of a regular expression and a learning rate factor. The first expression found in a
            variable's path decides; together they must cover every variable. None: one rate for all.
        freeze: regular expressions; variables in whose paths one is found, such as `"encoder"`, are not trained.
        share: which weights layers share, as in AlbertConfig; with `"none"` they start with the shared ones. None: as
            the pretrained model does.
        lora_rank: train low-rank updates of query and value kernels of this rank, and the head, alone.
        class_weights: `"balanced"` weighs training examples so that all classes count alike; or weights by
            label, such as `{"spam": 5.0}`, where other labels have 1.
        label_smoothing: share of each label's probability that is spread evenly over all labels in training.
        tfidf_baseline: whether to score a linear model on TF-IDF features for comparison; needs scikit-learn.
        optimizer: `"adamw"` or `"lamb"`.
        evaluations_per_epoch: how often to evaluate and to save the state of the run. The run ends with an evaluation,
            for which the last pass may be a few updates longer.
        keep: whether to keep the weights with the best score on `dev`, or the last ones.
        patience: stop after this number of evaluations without a better score. None: never.
        seed: for new weights, dropout and the order of examples.
        strategy, dtype_policy, remat: as in the `[training]` table of a pretraining recipe.
    """

    teacher: pathlib.Path | None = None
    pretrained: Start = pydantic.Field(default_factory=lambda given: given.get("teacher"), validate_default=True)
    train: Examples
    dev: Examples
    output: pathlib.Path
    add_tokens: pathlib.Path | None = None
    num_hidden_layers: Count | None = None
    from_scratch: bool = False
    epochs: int = pydantic.Field(default=3, ge=1)
    batch_size: Count = 32
    gradient_accumulation_steps: Count = 1
    learning_rate: float | None = pydantic.Field(default=None, gt=0)
    warmup_proportion: float = pydantic.Field(default=0.1, ge=0, lt=1)
    dropout: float | None = pydantic.Field(default=None, ge=0, lt=1)
    head_dropout: float | None = pydantic.Field(default=None, ge=0, lt=1)
    weight_decay: float = pydantic.Field(default=0.01, ge=0)
    learning_rate_rules: LearningRateRules | None = None
    freeze: tuple[str, ...] = ()
    share: Share | None = None
    lora_rank: Count | None = None
    class_weights: Literal["none", "balanced"] | dict[str, Annotated[float, pydantic.Field(ge=0)]] = "none"
    label_smoothing: float = pydantic.Field(default=0.0, ge=0, lt=1)
    tfidf_baseline: bool = False
    optimizer: Literal["adamw", "lamb"] = "adamw"
    evaluations_per_epoch: Count = 1
    keep: Literal["best", "last"] = "best"
    patience: Count | None = None
    seed: int = pydantic.Field(default=0, ge=0, lt=2**31)
    strategy: Strategy = "one_device"
    dtype_policy: DtypePolicy = "float32"
    remat: Remat = "none"

    @pydantic.model_validator(mode="after")
    def _check_task(self):
        fields, known = type(self).model_fields, {"task": self.task}
        defaults = {
            name: fields[name].get_default(call_default_factory=True, validated_data=known) for name in _READ_BY
        }
        given = {name: getattr(self, name) for name in _READ_BY}
        check_read(self.task, {name: value for name, value in given.items() if value != defaults[name]})
        if self.ragged_rows == "drop" and not self.header:
            raise ValueError(
                "`ragged_rows` must be 'refuse' without a header, which tells how many fields a row has. Received: "
                "ragged_rows='drop', header=False."
            )
        for name in ("label_separator", "threshold") if self.problem != "multi_label" else ():
            if getattr(self, name) != fields[name].default:
                raise ValueError(
                    f"`{name}` must be left out unless problem='multi_label'. Received: {name}={getattr(self, name)!r}."
                )
        return self

    @pydantic.model_validator(mode="after")
    def _check_combinations(self):
        is_text = self.task == "sequence_classification"
        if self.tfidf_baseline and not is_text:
            raise ValueError(f"`tfidf_baseline` must be false for the task {self.task!r}. Received: true.")
        for name, default in (("class_weights", "none"), ("label_smoothing", 0.0)):
            value = getattr(self, name)
            if value != default and not (is_text and self.problem == "classification"):
                raise ValueError(
                    f"`{name}` must be {default!r} unless texts have one label each. Received: {name}={value!r}."
                )
        if self.head_dropout is not None and self.task in ("question_answering", "sentence_embedding"):
            raise ValueError(
                f"`head_dropout` must be None for the task {self.task!r}, whose head has no dropout. Received: "
                f"head_dropout={self.head_dropout}."
            )
        if self.gradient_accumulation_steps > 1 and self.objective == "ranking":
            raise ValueError(
                "`gradient_accumulation_steps` must be 1 with objective='ranking', which compares all texts of a "
                "batch; remat='block' saves memory and changes no results. Received: "
                f"gradient_accumulation_steps={self.gradient_accumulation_steps}."
            )
        if self.from_scratch and self.lora_rank is not None:
            raise ValueError(
                "`lora_rank` must be None with `from_scratch`, whose random weights it would never train. Received: "
                f"lora_rank={self.lora_rank}."
            )
        if self.teacher is not None and self.remat != "none":
            raise ValueError(
                "`remat` must be 'none' with a teacher, whose hidden states are compared with those of the model. "
                f"Received: remat={self.remat!r}; gradient_accumulation_steps saves memory as well."
            )
        if self.batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                "`gradient_accumulation_steps` must divide `batch_size`. Received: "
                f"gradient_accumulation_steps={self.gradient_accumulation_steps}, batch_size={self.batch_size}."
            )
        return self
