"""The part of a recipe that says how weights are updated: optimizer, learning rate, averages."""

import math
import warnings
from typing import Annotated, Literal

import pydantic

# The published runs of ALBERT: this rate at this batch size, with LAMB.
PUBLISHED_RATE, PUBLISHED_BATCH = 0.00176, 4096


class Section(pydantic.BaseModel):
    """A table of a recipe: unknown keys, text for numbers, NaN and infinity are errors."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LearningRateScaling(Section):
    """The learning rate follows from the batch size.

    `rule` says by what: the square root of the ratio to `reference_batch_size` (usual for LAMB), or the ratio itself.
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

    `num_warmup_steps` counts updates; `bias_correction=False` and `reference_jump=True` are what the reference does.
    """

    name: Literal["lamb", "adamw"] = "lamb"
    learning_rate: float | None = pydantic.Field(default=None, gt=0)
    learning_rate_scaling: LearningRateScaling | None = None
    learning_rate_rules: tuple[tuple[str, Annotated[float, pydantic.Field(ge=0)]], ...] | None = None
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
            given = "neither" if self.learning_rate is None else "both"
            raise ValueError(
                "Either `optimizer.learning_rate` or `optimizer.learning_rate_scaling` must be given. "
                f"Received: {given}; give one."
            )
        if self.log_trust_ratios and self.name != "lamb":
            raise ValueError(
                "`optimizer.log_trust_ratios` must go with LAMB. Received: optimizer.name='adamw', which has none; "
                "remove it."
            )
        return self

    def peak(self, batch_size: int) -> float:
        """The learning rate at its highest."""
        if self.learning_rate_scaling is not None:
            return self.learning_rate_scaling.rate(batch_size)
        return self.learning_rate or 0.0

    def describe_peak(self, batch_size: int) -> str:
        """One line that says where the learning rate comes from.

        Example:

        >>> scaling = LearningRateScaling(rule="sqrt", reference_learning_rate=0.00176, reference_batch_size=4096)
        >>> OptimizerRecipe(learning_rate_scaling=scaling).describe_peak(512)
        'learning rate 0.000622 = 0.00176 * sqrt(512 / 4096)'
        """
        scaling = self.learning_rate_scaling
        line = f"learning rate {self.peak(batch_size):.3g}"
        if scaling is None:
            return line
        factor = f"sqrt({batch_size} / {scaling.reference_batch_size})"
        factor = factor if scaling.rule == "sqrt" else factor.removeprefix("sqrt")
        return f"{line} = {scaling.reference_learning_rate:g} * {factor}"

    def warn_if_unscaled(self, batch_size: int) -> None:
        """One sentence where the published rate of LAMB is to be used with a much smaller batch."""
        is_published = self.name == "lamb" and self.learning_rate == PUBLISHED_RATE
        if is_published and batch_size <= PUBLISHED_BATCH // 2:
            scaled = PUBLISHED_RATE * math.sqrt(batch_size / PUBLISHED_BATCH)
            warnings.warn(
                f"LAMB's learning rate {PUBLISHED_RATE} belongs to batches of {PUBLISHED_BATCH}, and with "
                f"batch_size={batch_size} the loss often does not fall; scale it by the square root to {scaled:.3g}, "
                "or give `learning_rate_scaling`.",
                stacklevel=3,
            )

    def build(self, num_train_steps: int, batch_size: int):
        """The Keras optimizer for a run of so many updates with batches of this size."""
        from albert_tf import optimizers

        schedule = optimizers.WarmupSchedule(
            self.peak(batch_size),
            num_train_steps=num_train_steps,
            num_warmup_steps=self.num_warmup_steps,
            decay=self.decay,
            power=self.power,
            end_learning_rate=self.end_learning_rate,
            start_warmup_step=self.start_warmup_step,
            reference_jump=self.reference_jump,
        )
        arguments = {
            "weight_decay": self.weight_decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "global_clipnorm": self.global_clipnorm,
            "learning_rate_rules": self.learning_rate_rules,
        }
        if self.ema_momentum is not None:
            arguments |= {"use_ema": True, "ema_momentum": self.ema_momentum}
        if self.name == "adamw":
            return optimizers.AdamW(schedule, **arguments)
        return optimizers.Lamb(schedule, keep_trust_ratios=self.log_trust_ratios, **arguments)
