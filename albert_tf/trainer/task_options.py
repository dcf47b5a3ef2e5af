"""The options of fine-tuning, in four parts: data, model, optimizer and training.

Each part is a class, which functions take that need no other. FinetuneOptions has the options of all, so that they are
given without naming the parts.
"""

import pathlib
from typing import Annotated, Any, Literal

import pydantic
from pydantic_core import PydanticCustomError

from albert_tf.config import Share
from albert_tf.data.finetuning.example_sources import as_file
from albert_tf.data.finetuning.table_format import TableFormat
from albert_tf.tasks.learned import learned_task
from albert_tf.tasks.multiple_choice.settings import ChoiceSettings
from albert_tf.tasks.question_answering.settings import QuestionSettings
from albert_tf.tasks.sentence_embedding.settings import EmbeddingSettings
from albert_tf.tasks.sequence_classification.settings import ClassificationSettings
from albert_tf.tasks.settings import Settings, check_read
from albert_tf.tasks.token_classification.settings import TagSettings
from albert_tf.trainer.optimizer_recipe import LearningRateRules, OptimizerRecipe, Section
from albert_tf.trainer.recipe import ComputeOptions, Count, TrainingRecipe


def _as_file(data: Any, info: pydantic.ValidationInfo) -> Any:
    given = {name: info.data[name] for name in ("header", "encoding", "delimiter") if name in info.data}
    table = TableFormat(drop_ragged=info.data.get("ragged_rows") == "drop", **given)
    return str(as_file(data, info.field_name or "dev", table))  # in JSON, paths are strings


def _start(path: Any) -> Any:
    if path is None:  # nor is there a teacher
        raise PydanticCustomError("missing", "Field required")
    return str(path) if isinstance(path, pathlib.PurePath) else path  # in JSON, paths are strings


Examples = Annotated[pathlib.Path, pydantic.BeforeValidator(_as_file)]
Start = Annotated[pathlib.Path, pydantic.BeforeValidator(_start)]


class ModelOptions(Section):
    """Which model is trained, from which weights, and which of them change.

    Args:
        teacher: folder of a model that was fine-tuned for the same task, labels and vocabulary. The model also imitates
            its outputs and hidden states, see `albert_tf.models.distillation`; best with fewer layer calls.
        pretrained: folder with a checkpoint of any format and its vocabulary. With a teacher, by default the teacher.
        add_tokens: file of tokens to add to the vocabulary, one a line, such as markers or the words of a domain.
        num_hidden_layers: number of calls of the shared block, fewer for speed. None: the pretrained model's.
        from_scratch: use only config and vocabulary of `pretrained`, not its weights, as a baseline.
        dropout: of hidden states and attention. None: the pretrained model's.
        head_dropout: of the head's input, `classifier_dropout_prob`, where the head has one. None: the pretrained
            model's, which is 0.1 unless its config says otherwise.
        freeze: regular expressions; variables in whose paths one is found, such as `"encoder"`, are not trained.
        share: which weights layers share, as in AlbertConfig; with `"none"` they start with the shared ones. None: as
            the pretrained model does.
        lora_rank: train low-rank updates of query and value kernels of this rank, and the head, alone.
    """

    teacher: pathlib.Path | None = None
    pretrained: Start = pydantic.Field(default_factory=lambda values: values.get("teacher"), validate_default=True)
    add_tokens: pathlib.Path | None = None
    num_hidden_layers: Count | None = None
    from_scratch: bool = False
    dropout: float | None = pydantic.Field(default=None, ge=0, lt=1)
    head_dropout: float | None = pydantic.Field(default=None, ge=0, lt=1)
    freeze: tuple[str, ...] = ()
    share: Share | None = None
    lora_rank: Count | None = None

    @pydantic.model_validator(mode="after")
    def _check_adapters(self):
        if self.from_scratch and self.lora_rank is not None:
            raise ValueError(
                "`lora_rank` must be None with `from_scratch`, whose random weights it would never train. Received: "
                f"lora_rank={self.lora_rank}."
            )
        return self


class DataOptions(ClassificationSettings, TagSettings, QuestionSettings, ChoiceSettings, EmbeddingSettings):
    """The examples, and how the task reads them: the settings of all tasks, of which its own may be given.

    Args:
        train: training examples; see the guide to data for the formats. A file, a folder or a URL, a pandas or polars
            DataFrame, a Dataset or DatasetDict of Hugging Face, or an iterable of dicts.
        dev: examples to evaluate on, likewise.
    """

    train: Examples
    dev: Examples

    @property
    def settings(self) -> Settings:
        """Those of the task; raises ValueError if they exclude each other."""
        kind = learned_task(self.task).settings_class
        return kind.validated({name: value for name, value in self if name in kind.model_fields})

    def check(self) -> None:
        names = set(DataOptions.model_fields) - {"train", "dev"}
        given = self.model_dump(include=names, exclude_defaults=True)
        check_read(self.task, given, learned_task(self.task).settings_class.model_fields)
        _ = self.settings  # raises


class OptimizerOptions(Section):
    """How the weights are updated.

    Args:
        optimizer: `"adamw"` or `"lamb"`.
        learning_rate: the peak, followed by linear decay to 0. None: 3e-5, or 1e-3 for models with a `hidden_size`
            below 512.
        warmup_proportion: fraction of all updates for linear warm-up.
        weight_decay: biases and layer normalisation are excluded.
        learning_rate_rules: pairs of a regular expression and a learning rate factor. The first expression found in a
            variable's path decides; together they must cover every variable. None: one rate for all.
    """

    optimizer: Literal["adamw", "lamb"] = "adamw"
    learning_rate: float | None = pydantic.Field(default=None, gt=0)
    warmup_proportion: float = pydantic.Field(default=0.1, ge=0, lt=1)
    weight_decay: float = pydantic.Field(default=0.01, ge=0)
    learning_rate_rules: LearningRateRules | None = None

    def optimizer_recipe(self, num_train_steps: int, learning_rate: float) -> OptimizerRecipe:
        """The optimizer of a run of this length; `learning_rate` is the one of this run's model."""
        return OptimizerRecipe(
            name=self.optimizer,
            learning_rate=learning_rate,
            num_warmup_steps=round(self.warmup_proportion * num_train_steps),
            weight_decay=self.weight_decay,
            learning_rate_rules=self.learning_rate_rules,
        )


class TrainingOptions(ComputeOptions):
    """Length, batches, evaluations and devices.

    Args:
        output: folder to write.
        epochs: passes over `train`.
        batch_size: texts, or windows of long texts and passages, per update.
        gradient_accumulation_steps: number of parts of a batch that are computed one after the other.
        evaluations_per_epoch: how often to evaluate and to save the state of the run. The run ends with an evaluation,
            for which the last pass may be a few updates longer.
        keep: whether to keep the weights with the best score on `dev`, or the last ones.
        patience: stop after this number of evaluations without a better score. None: never.
        seed: for new weights, dropout and the order of examples.
        strategy, dtype_policy, jit_compile, remat: as in the `[training]` table of a pretraining recipe.
    """

    output: pathlib.Path
    epochs: int = pydantic.Field(default=3, ge=1)
    batch_size: Count = 32
    evaluations_per_epoch: Count = 1
    keep: Literal["best", "last"] = "best"
    patience: Count | None = None

    def training_recipe(self, steps_per_epoch: int, best_metric: str) -> TrainingRecipe:
        """Length and intervals of a run; an interval ends with an evaluation."""
        interval = -(-steps_per_epoch // self.evaluations_per_epoch)
        total = -(-steps_per_epoch * self.epochs // interval) * interval
        values: dict[str, Any] = dict.fromkeys(("log_every", "evaluate_every", "save_every"), interval)
        values |= self.model_dump(include=set(ComputeOptions.model_fields))
        return TrainingRecipe(**values, num_train_steps=total, keep_checkpoints=1, best_metric=best_metric)


class FinetuneOptions(TrainingOptions, OptimizerOptions, DataOptions, ModelOptions):
    """One fine-tuning run: the options that ModelOptions, DataOptions, OptimizerOptions and TrainingOptions describe.

    The defaults suit a few thousand examples. The largest models need lower learning rates (1e-5), very small ones more
    epochs.
    """

    @pydantic.model_validator(mode="after")
    def _check_combinations(self):
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
        if self.teacher is not None and self.remat != "none":
            raise ValueError(
                "`remat` must be 'none' with a teacher, whose hidden states are compared with those of the model. "
                f"Received: remat={self.remat!r}; gradient_accumulation_steps saves memory as well."
            )
        return self
