"""The `[optimizer]` table of a recipe: optimizer, learning rate and weight averaging."""

import math
import warnings
from typing import Annotated, Literal

import pydantic

# ALBERT was published with LAMB at this learning rate and batch size.
PUBLISHED_RATE, PUBLISHED_BATCH = 0.00176, 4096
LearningRateRules = tuple[tuple[str, Annotated[float, pydantic.Field(ge=0)]], ...]
# Fields of OptimizerRecipe that are arguments of WarmupSchedule, and of AdamW and Lamb.
_SCHEDULE_FIELDS = {"num_warmup_steps", "decay", "power", "end_learning_rate", "start_warmup_step", "reference_jump"}
_UPDATE_FIELDS = {
    *("weight_decay", "beta_1", "beta_2", "epsilon", "bias_correction", "global_clipnorm", "learning_rate_rules"),
}


class Section(pydantic.BaseModel):
    """A table of a recipe. Unknown keys, strings for numbers, NaN and infinity are rejected."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LearningRateScaling(Section):
    """Derives the learning rate from the batch size.

    It is scaled by the ratio to `reference_batch_size` (`"linear"`) or its square root (`"sqrt"`, usual for LAMB).
    """

    rule: Literal["sqrt", "linear"]
    reference_learning_rate: float = pydantic.Field(gt=0)
    reference_batch_size: int = pydantic.Field(gt=0, lt=2**31)

    def rate(self, batch_size: int) -> float:
        """The learning rate for this batch size."""
        ratio = batch_size / self.reference_batch_size
        return self.reference_learning_rate * (math.sqrt(ratio) if self.rule == "sqrt" else ratio)


class OptimizerRecipe(Section):
    """The optimizer and its learning rate.

    `num_warmup_steps` is in updates; only LAMB has trust ratios to log. The reference has `bias_correction=False` and
    `reference_jump=True`.
    """

    name: Literal["lamb", "adamw"] = "lamb"
    learning_rate: float | None = pydantic.Field(default=None, gt=0)
    learning_rate_scaling: LearningRateScaling | None = None
    learning_rate_rules: LearningRateRules | None = None
    num_warmup_steps: int = pydantic.Field(default=0, ge=0, lt=2**31)
    start_warmup_step: int = pydantic.Field(default=0, ge=0, lt=2**31)
    decay: Literal["linear", "polynomial", "cosine", "constant"] = "polynomial"
    power: float = pydantic.Field(default=1.0, gt=0)
    end_learning_rate: float = pydantic.Field(default=0.0, ge=0)
    weight_decay: float = pydantic.Field(default=0.01, ge=0)
    beta_1: float = pydantic.Field(default=0.9, ge=0, lt=1)
    beta_2: float = pydantic.Field(default=0.999, ge=0, lt=1)
    epsilon: float = pydantic.Field(default=1e-6, gt=0)
    global_clipnorm: float | None = pydantic.Field(default=1.0, gt=0)
    bias_correction: bool = True
    reference_jump: bool = False
    ema_momentum: float | None = pydantic.Field(default=None, gt=0, lt=1)
    log_trust_ratios: bool = False

    @pydantic.model_validator(mode="after")
    def _check_rate(self):
        if (self.learning_rate is None) == (self.learning_rate_scaling is None):
            received = "neither" if self.learning_rate is None else "both"
            raise ValueError(
                "Either `optimizer.learning_rate` or `optimizer.learning_rate_scaling` must be given. "
                f"Received: {received}."
            )
        if self.log_trust_ratios and self.name != "lamb":
            raise ValueError(
                "`optimizer.log_trust_ratios` must be false unless `optimizer.name` is 'lamb'. "
                f"Received: optimizer.name={self.name!r}."
            )
        return self

    def peak(self, batch_size: int) -> float:
        """The highest learning rate."""
        scaling = self.learning_rate_scaling
        return scaling.rate(batch_size) if scaling is not None else self.learning_rate or 0.0

    def warn_if_unscaled(self, batch_size: int) -> None:
        """Warns if LAMB's published learning rate is used with a much smaller batch."""
        is_published = self.name == "lamb" and self.learning_rate == PUBLISHED_RATE
        if is_published and batch_size <= PUBLISHED_BATCH // 2:
            scaled = PUBLISHED_RATE * math.sqrt(batch_size / PUBLISHED_BATCH)
            warnings.warn(
                f"LAMB's learning rate {PUBLISHED_RATE} was published for batches of {PUBLISHED_BATCH}; with "
                f"batch_size={batch_size} the loss often does not fall. Use {scaled:.3g} (square-root scaling), or set "
                "`learning_rate_scaling`.",
                stacklevel=3,
            )

    def build(self, num_train_steps: int, batch_size: int):
        """The Keras optimizer of a run of `num_train_steps` updates; raises ValueError if warm-up is longer."""
        from albert_tf import optimizers

        rates = self.model_dump(include=_SCHEDULE_FIELDS)
        schedule = optimizers.WarmupSchedule(self.peak(batch_size), num_train_steps, **rates)
        arguments = self.model_dump(include=_UPDATE_FIELDS)
        if self.ema_momentum is not None:
            arguments |= {"use_ema": True, "ema_momentum": self.ema_momentum}
        if self.name == "adamw":
            return optimizers.AdamW(schedule, **arguments)
        return optimizers.Lamb(schedule, keep_trust_ratios=self.log_trust_ratios, **arguments)
