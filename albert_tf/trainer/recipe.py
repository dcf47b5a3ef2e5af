"""Recipes: all settings of a pretraining run, in one TOML file that is validated before anything starts."""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pydantic

from albert_tf.config import PRESETS, AlbertConfig
from albert_tf.files.json import nearest, read_toml, with_settings
from albert_tf.files.validation import checked
from albert_tf.trainer.optimizer_recipe import OptimizerRecipe, Section

if TYPE_CHECKING:
    from albert_tf.tokenization import AlbertTokenizer


def _check_remat(value: str | int) -> str | int:
    if value not in ("none", "block") and (isinstance(value, str) or value < 1):
        raise ValueError(f'`remat` must be "none", "block" or a number of layer calls. Received: {value!r}.')
    return value


Strategy = Literal["one_device", "mirrored", "multi_worker", "tpu"]
DtypePolicy = Literal["float32", "mixed_bfloat16", "mixed_float16"]
Remat = Annotated[str | int, pydantic.AfterValidator(_check_remat)]
Count = Annotated[int, pydantic.Field(gt=0, lt=2**31)]

_SOURCES = ("examples", "documents")
_SIZES = ("embedding_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
_OF_WEIGHTS = ("weights", "new_head", "add_tokens")


class DataRecipe(Section):
    """Folders written by `albert-tf prepare`, and the objective they were prepared for.

    A run trains either on `examples`, or on `documents`, from which examples are made on the fly. The tokenizer is read
    from the same folder.
    """

    examples: pathlib.Path | None = None
    documents: pathlib.Path | None = None
    heldout: pathlib.Path | None = None
    objective: Literal["sentence_order", "next_sentence", "none"] = "sentence_order"

    @pydantic.model_validator(mode="after")
    def _check_source(self):
        sources = {name: getattr(self, name) for name in _SOURCES if getattr(self, name) is not None}
        if len(sources) != 1:
            raise ValueError(
                "`[data]` must have either `examples` or `documents`. Received: "
                f"{', '.join(f'{name}={value}' for name, value in sources.items()) or 'neither'}."
            )
        return self

    @property
    def source(self) -> pathlib.Path:
        """The folder to train on."""
        return self.examples or self.documents  # type: ignore[return-value]


class ComputeOptions(Section):
    """How a step is computed, in pretraining and in fine-tuning."""

    batch_size: Count
    gradient_accumulation_steps: Count = 1
    seed: int = pydantic.Field(default=0, ge=0, lt=2**31)
    strategy: Strategy = "one_device"
    dtype_policy: DtypePolicy = "float32"
    jit_compile: bool | Literal["auto"] = "auto"
    remat: Remat = "none"

    @pydantic.model_validator(mode="after")
    def _check_parts(self):
        if self.batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                "`gradient_accumulation_steps` must divide `batch_size`. Received: "
                f"gradient_accumulation_steps={self.gradient_accumulation_steps}, batch_size={self.batch_size}."
            )
        return self


class TrainingRecipe(ComputeOptions):
    """Length, batch size, intervals and devices of a run. Intervals are in updates.

    `best_metric` is the held-out metric that decides on the best checkpoint, which is kept besides the newest ones.
    """

    num_train_steps: Count
    log_every: Count = 100
    evaluate_every: Count = 1000
    save_every: Count = 1000
    keep_checkpoints: Count = 3
    best_metric: str = "masked_lm_loss"
    stop_above_best: float | None = pydantic.Field(default=3.0, gt=0)
    steps_per_execution: Count = 1
    scan_layers: bool = False

    @pydantic.model_validator(mode="after")
    def _check_intervals(self):
        for name, divisor in (
            ("num_train_steps", "log_every"),
            ("evaluate_every", "log_every"),
            ("save_every", "log_every"),
            ("log_every", "steps_per_execution"),
        ):
            if getattr(self, name) % getattr(self, divisor):
                raise ValueError(
                    f"`{name}` must be a multiple of `{divisor}`. Received: {name}={getattr(self, name)}, "
                    f"{divisor}={getattr(self, divisor)}; change one of these keys of [training]."
                )
        return self

    def compile_arguments(self) -> dict[str, Any]:
        """How a step is computed, as arguments of `model.compile`."""
        names = {"gradient_accumulation_steps", "remat", "scan_layers", "steps_per_execution", "jit_compile"}
        return self.model_dump(include=names)


class Recipe(Section):
    """One pretraining run.

    Args:
        model: `preset` and any AlbertConfig fields that override it; or all sizes of a model of one's own; or
            `weights`, any checkpoint to start from, with `new_head = true` to initialise heads that it lacks, and
            `add_tokens`, the file of tokens that were added to its vocabulary when the data were prepared.
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

    @pydantic.model_validator(mode="after")
    def _check_warmup(self):
        end, steps = self.optimizer.start_warmup_step + self.optimizer.num_warmup_steps, self.training.num_train_steps
        if end > steps and not self.optimizer.reference_jump:
            raise ValueError(
                f"`num_warmup_steps` of [optimizer] must end within the run. Received: warm-up to step {end}, "
                f"num_train_steps={steps}; shorten warm-up or train longer."
            )
        return self

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
        """Whether heads that the checkpoint lacks are newly initialised."""
        return self.model.get("new_head", False)

    def check_vocabulary(self) -> None:
        """Raises ValueError unless model and prepared data have the same vocabulary size, and tokens added to it."""
        from albert_tf.data.manifest import Manifest

        recipe = Manifest.load(self.data.source).recipe
        size, tokens = recipe.vocab_size, self.model.get("add_tokens")
        if tokens is not None and _extended(self.model["weights"], tokens).vocab_hash != recipe.vocab_hash:
            raise ValueError(
                f"{self.data.source} was prepared with another vocabulary than that of {self.model['weights']} with "
                f"the tokens of {tokens}; prepare the texts with `--tokenizer {self.model['weights']} --add-tokens "
                f"{tokens}`."
            )
        if self.config.vocab_size != size:
            raise ValueError(
                f"The model has vocab_size={self.config.vocab_size}, but {self.data.source} was prepared with a "
                f"vocabulary of {size} pieces; set vocab_size = {size} under [model], or prepare the texts with the "
                "model's vocabulary."
            )


def _config_of(values: Mapping[str, Any]) -> AlbertConfig:
    changes = {name: value for name, value in values.items() if name not in _OF_WEIGHTS}
    weights, new_head, tokens = values.get("weights"), values.get("new_head", False), values.get("add_tokens", "")
    if weights is None and not {"new_head", "add_tokens"} & values.keys():
        if "preset" in changes:
            return AlbertConfig.from_preset(changes.pop("preset")).replace(**changes)
        if missing := [name for name in _SIZES if name not in changes]:
            raise ValueError(
                f"`[model]` must have `preset`, or `weights`, or all sizes. Missing: {', '.join(missing)}."
            )
        return AlbertConfig(**changes)
    is_valid = isinstance(weights, str) and isinstance(new_head, bool) and isinstance(tokens, str)
    if not is_valid or "preset" in changes or (tokens and "vocab_size" in changes):
        raise ValueError(
            "`[model]` must have either `preset` or `weights`, the path of a checkpoint; only with `weights` may it "
            "have `new_head`, true or false, and `add_tokens`, the path of a file, instead of `vocab_size`. Received: "
            f"{dict(values)}."
        )
    if tokens:
        changes["vocab_size"] = len(_extended(weights, tokens))
    return _config_of_checkpoint(weights).replace(**changes)


@functools.lru_cache(maxsize=4)
def _config_of_checkpoint(path: str) -> AlbertConfig:
    from albert_tf.checkpoints.checkpoint import check_size
    from albert_tf.checkpoints.reading import read

    checkpoint = read(path)
    check_size(checkpoint)
    return checkpoint.config


@functools.lru_cache(maxsize=4)
def _extended(weights: str, tokens: str) -> "AlbertTokenizer":
    """The tokenizer of a checkpoint with the tokens of a file."""
    from albert_tf.files.hub import model_folder
    from albert_tf.tokenization import AlbertTokenizer
    from albert_tf.tokenization.added_tokens_files import read_token_lines

    folder = model_folder(weights)
    tokenizer = AlbertTokenizer.from_pretrained(folder if folder.is_dir() else folder.parent)
    tokenizer.add_tokens(read_token_lines(tokens))
    return tokenizer


def load_recipe(path: str | pathlib.Path, settings: Sequence[str] = (), **data: pathlib.Path | None) -> Recipe:
    """Reads a recipe file.

    Args:
        path: a TOML file.
        settings: such as `"training.seed=3"`; values that override the file's, as of `--set`.
        **data: values that override the file's `[data]`, unless None.

    Raises:
        ValueError: the file has an unknown key, for which the nearest known one is suggested, or an invalid value.
    """
    values = with_settings(read_toml(path, "correct the recipe"), settings)
    if paths := {key: str(value) for key, value in data.items() if value is not None}:
        replaced = _SOURCES if paths.keys() & set(_SOURCES) else ()
        others = {key: value for key, value in values.get("data", {}).items() if key not in replaced}
        values["data"] = {**others, **paths}
    return parse_recipe(values, str(path))


def parse_recipe(values: Mapping[str, Any], source: str = "the recipe") -> Recipe:
    """Validates the values of a recipe. `source` names them in error messages."""
    _check_names(values.get("model"), source)
    return checked(Recipe, values, source)


def _check_names(model: Any, source: str) -> None:
    """Raises ValueError for an unknown key or preset of `[model]`."""
    if not isinstance(model, Mapping):
        return
    known = ("preset", *_OF_WEIGHTS, *(field.name for field in dataclasses.fields(AlbertConfig)))
    for key in model:
        if key not in known:
            raise ValueError(f"Unknown key 'model.{key}' in {source}{nearest(key, known, '; remove it.')}")
    preset = model.get("preset")
    if "preset" in model and preset not in tuple(PRESETS):
        raise ValueError(
            f"`preset` must be one of {', '.join(PRESETS)}. Received: {preset!r} in {source}{nearest(preset, PRESETS)}"
        )
