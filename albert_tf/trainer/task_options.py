"""The options of fine-tuning: the task and its files, and the run."""

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
from albert_tf.trainer.optimizer_recipe import LearningRateRules
from albert_tf.trainer.recipe import Count, DtypePolicy, Remat, Strategy


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


class FinetuneOptions(ClassificationSettings, TagSettings, QuestionSettings, ChoiceSettings, EmbeddingSettings):
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
        optimizer: `"adamw"` or `"lamb"`.
        evaluations_per_epoch: how often to evaluate and to save the state of the run. The run ends with an evaluation,
            for which the last pass may be a few updates longer.
        keep: whether to keep the weights with the best score on `dev`, or the last ones.
        patience: stop after this number of evaluations without a better score. None: never.
        seed: for new weights, dropout and the order of examples.
        strategy, dtype_policy, jit_compile, remat: as in the `[training]` table of a pretraining recipe.
    """

    teacher: pathlib.Path | None = None
    pretrained: Start = pydantic.Field(default_factory=lambda values: values.get("teacher"), validate_default=True)
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
    optimizer: Literal["adamw", "lamb"] = "adamw"
    evaluations_per_epoch: Count = 1
    keep: Literal["best", "last"] = "best"
    patience: Count | None = None
    seed: int = pydantic.Field(default=0, ge=0, lt=2**31)
    strategy: Strategy = "one_device"
    dtype_policy: DtypePolicy = "float32"
    jit_compile: bool | Literal["auto"] = "auto"
    remat: Remat = "none"

    @property
    def settings(self) -> Settings:
        """Those of the task."""
        kind = learned_task(self.task).settings_class
        names = kind.model_fields.keys() & type(self).model_fields.keys()
        return kind.model_construct(**{name: getattr(self, name) for name in names})

    def check(self) -> None:
        of_tasks = {name for kind in FinetuneOptions.__bases__ for name in kind.model_fields} - {*Settings.model_fields}
        defaults = {name: field.default for name, field in FinetuneOptions.model_fields.items() if name in of_tasks}
        others = {name: value for name, default in defaults.items() if (value := getattr(self, name)) != default}
        check_read(self.task, others, learned_task(self.task).settings_class.model_fields)
        self.settings.check()

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
