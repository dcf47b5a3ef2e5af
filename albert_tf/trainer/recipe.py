"""Recipes: all settings of a pretraining run, in one TOML file that is validated before anything starts."""

import functools
import pathlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic

from albert_tf.config import AlbertConfig
from albert_tf.json_files import read_toml
from albert_tf.trainer.optimizer_recipe import OptimizerRecipe, Section
from albert_tf.trainer.validation import checked

Strategy = Literal["one_device", "mirrored", "multi_worker", "tpu"]

Count = Annotated[int, pydantic.Field(gt=0, lt=2**31)]
_SOURCES = ("examples", "documents")


class DataRecipe(Section):
    """Folders made by `albert-tf prepare`, and the objective that they were made for.

    The run trains on `examples`, or on `documents`, of which examples are made on the fly. The tokenizer is the one in
    that folder.
    """

    examples: pathlib.Path | None = None
    documents: pathlib.Path | None = None
    heldout: pathlib.Path | None = None
    objective: Literal["sentence_order", "next_sentence", "none"] = "sentence_order"

    @pydantic.model_validator(mode="after")
    def _check_source(self):
        given = {name: getattr(self, name) for name in _SOURCES if getattr(self, name) is not None}
        if len(given) != 1:
            raise ValueError(
                "`[data]` must have one of `examples` and `documents`. Received: "
                f"{', '.join(f'{name}={value}' for name, value in given.items()) or 'none'}; name one of them."
            )
        return self

    @property
    def source(self) -> pathlib.Path:
        """The folder to train on."""
        return self.examples or self.documents  # type: ignore[return-value]


class TrainingRecipe(Section):
    """Length, batch size, intervals and devices of a run. All intervals count updates.

    `best_metric` is that of the held-out examples by which the best checkpoint is kept beside the newest ones, and
    `histograms` says whether TensorBoard gets those of the weights, at every evaluation.
    """

    num_train_steps: Count
    batch_size: Count
    gradient_accumulation_steps: Count = 1
    seed: int = pydantic.Field(default=0, ge=0, lt=2**31)
    log_every: Count = 100
    evaluate_every: Count = 1000
    save_every: Count = 1000
    keep_checkpoints: Count = 3
    best_metric: str = "masked_lm_loss"
    stop_above_best: float | None = pydantic.Field(default=3.0, gt=0)
    steps_per_execution: Count = 1
    strategy: Strategy = "one_device"
    dtype_policy: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    jit_compile: bool | Literal["auto"] = "auto"
    remat: str | int = "none"
    histograms: bool = True

    @pydantic.field_validator("remat")
    @classmethod
    def _check_remat(cls, value: str | int) -> str | int:
        if value not in ("none", "block") and (isinstance(value, str) or value < 1):
            raise ValueError(
                f'`training.remat` must be "none", "block" or a number of block applications. Received: {value!r}.'
            )
        return value

    @pydantic.model_validator(mode="after")
    def _check_intervals(self):
        for name in ("num_train_steps", "evaluate_every", "save_every"):
            if getattr(self, name) % self.log_every:
                raise ValueError(
                    f"`{name}` must be a multiple of `log_every`. Received: {name}={getattr(self, name)}, "
                    f"log_every={self.log_every}; round one of them."
                )
        if self.log_every % self.steps_per_execution:
            raise ValueError(
                f"`log_every` must be a multiple of `steps_per_execution`. Received: log_every={self.log_every}, "
                f"steps_per_execution={self.steps_per_execution}; round one of them."
            )
        if self.batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                "`batch_size` must be a multiple of `gradient_accumulation_steps`. Received: "
                f"batch_size={self.batch_size}, gradient_accumulation_steps={self.gradient_accumulation_steps}; round "
                "one of them."
            )
        return self

    @pydantic.model_validator(mode="after")
    def _check_xla(self):
        if self.jit_compile is True and self.strategy != "one_device":
            raise ValueError(
                f'`jit_compile` must be false or "auto" with several devices. Received: jit_compile=true, '
                f'strategy="{self.strategy}"; XLA compiles the program of one device (TPUs compile by themselves).'
            )
        return self


class Recipe(Section):
    """One pretraining run.

    Args:
        model: `preset` and any fields of AlbertConfig that differ from it; or `weights`, any checkpoint to start from,
            with `new_head = true` where heads that it does not have may start fresh.
        data: DataRecipe.
        optimizer: OptimizerRecipe.
        training: TrainingRecipe.
    """

    model: dict[str, Any]
    data: DataRecipe
    optimizer: OptimizerRecipe
    training: TrainingRecipe

    @pydantic.field_validator("model")
    @classmethod
    def _check_model(cls, values: dict[str, Any]) -> dict[str, Any]:
        _config_of(values)
        return values

    @property
    def config(self) -> AlbertConfig:
        """The model's config."""
        return _config_of(self.model)

    @property
    def weights(self) -> pathlib.Path | None:
        """The checkpoint to start from."""
        return pathlib.Path(self.model["weights"]) if "weights" in self.model else None

    @property
    def new_head(self) -> bool:
        """Whether heads that the checkpoint does not have start fresh."""
        return self.model.get("new_head", False)

    def check_vocabulary(self) -> None:
        """Raises ValueError unless the model has one embedding for each piece of the vocabulary of its examples."""
        from albert_tf.data.manifest import Manifest

        pieces = Manifest.load(self.data.source).recipe.vocab_size
        if self.config.vocab_size != pieces:
            raise ValueError(
                f"The model has vocab_size={self.config.vocab_size}, and {self.data.source} was prepared with a "
                f"vocabulary of {pieces} pieces; set vocab_size = {pieces} under [model], or prepare the texts with "
                "the model's vocabulary."
            )


def _config_of(values: Mapping[str, Any]) -> AlbertConfig:
    changes = {name: value for name, value in values.items() if name not in ("weights", "new_head")}
    weights, new_head = values.get("weights"), values.get("new_head", False)
    if weights is None and "new_head" not in values:
        return AlbertConfig.from_preset(changes.pop("preset", "base_v2")).replace(**changes)
    if not isinstance(weights, str) or not isinstance(new_head, bool) or "preset" in changes:
        raise ValueError(
            "`[model]` must have `weights`, the path of a checkpoint, without `preset`, and may then have `new_head`, "
            f"true or false. Received: {dict(values)}; leave one of them out."
        )
    return _config_of_checkpoint(weights).replace(**changes)


@functools.lru_cache(maxsize=4)
def _config_of_checkpoint(path: str) -> AlbertConfig:
    from albert_tf import checkpoints

    checkpoint = checkpoints.read(path)
    checkpoints.check_size(checkpoint)
    return checkpoint.config


def load_recipe(path: str | pathlib.Path, **data: pathlib.Path | None) -> Recipe:
    """Reads a recipe file.

    Args:
        path: a TOML file.
        **data: values that replace those of the file's `[data]`, where they are not None.

    Raises:
        ValueError: naming the key that is unknown, with the nearest known one, or the value that cannot be.
    """
    values = read_toml(path, "correct the recipe")
    given = {key: str(value) for key, value in data.items() if value is not None}
    if given:
        kept = values.get("data", {})
        if given.keys() & set(_SOURCES):
            kept = {key: value for key, value in kept.items() if key not in _SOURCES}
        values["data"] = {**kept, **given}
    return parse_recipe(values, str(path))


def parse_recipe(values: Mapping[str, Any], source: str = "the recipe") -> Recipe:
    """Checks the values of a recipe; what is wrong with them is said in one sentence."""
    return checked(Recipe, values, source)
