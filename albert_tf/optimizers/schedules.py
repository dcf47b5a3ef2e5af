"""Learning rate schedule: linear warm-up to a peak, then decay."""

import inspect
import math
from numbers import Integral
from typing import Literal, get_args

import keras
from keras import ops

Decay = Literal["linear", "polynomial", "cosine", "constant"]


@keras.saving.register_keras_serializable(package="albert_tf")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up from 0 to a peak, then decay to an end value.

    By default decay starts at the end of warm-up, so the rate is continuous. In the reference decay starts at step 0
    and warm-up overrides it, so its rate drops by `num_warmup_steps / num_train_steps` of the peak at the end of
    warm-up; `reference_jump=True` reproduces that.

    Args:
        learning_rate: float. The peak.
        num_train_steps: int. The step at which decay reaches `end_learning_rate`; the rate is constant afterwards.
        num_warmup_steps: int. Length of warm-up, which starts at rate 0. 0 means no warm-up.
        decay: str. `"polynomial"`, `"linear"` (polynomial with power 1), `"cosine"` or `"constant"`.
        power: float. The exponent of polynomial decay.
        end_learning_rate: float. The final rate of polynomial and cosine decay.
        start_warmup_step: int. The step at which warm-up starts; the rate is 0 before.
        reference_jump: bool. Whether to use the reference's rates, which also are negative before `start_warmup_step`.

    Call arguments:
        step: int or integer tensor. Number of updates made before.

    Returns:
        Scalar float tensor: the learning rate.

    Raises:
        ValueError: a number is out of range, or warm-up does not end within the run.

    Example:

    >>> schedule = WarmupSchedule(0.1, num_train_steps=10, num_warmup_steps=5)
    >>> [round(float(schedule(step)), 3) for step in (0, 4, 5, 6, 10)]
    [0.0, 0.08, 0.1, 0.08, 0.0]
    >>> schedule = WarmupSchedule(0.1, num_train_steps=10, num_warmup_steps=5, reference_jump=True)
    >>> [round(float(schedule(step)), 3) for step in (0, 4, 5, 6, 10)]
    [0.0, 0.08, 0.05, 0.04, 0.0]

    References:
        `optimization.py` (create_optimizer) of google-research/albert.
    """

    def __init__(
        self,
        learning_rate: float,
        num_train_steps: int,
        num_warmup_steps: int = 0,
        decay: Decay = "polynomial",
        power: float = 1.0,
        end_learning_rate: float = 0.0,
        start_warmup_step: int = 0,
        reference_jump: bool = False,
    ):
        super().__init__()
        self.learning_rate = learning_rate
        self.num_train_steps = num_train_steps
        self.num_warmup_steps = num_warmup_steps
        self.decay = decay
        self.power = power
        self.end_learning_rate = end_learning_rate
        self.start_warmup_step = start_warmup_step
        self.reference_jump = reference_jump
        self._check()

    def __call__(self, step):
        dtype = keras.backend.floatx()
        since_start = ops.cast(step, "int32") - self.start_warmup_step
        decayed = self._decayed(step, dtype)
        if not self.num_warmup_steps:
            return decayed if self.reference_jump else ops.where(since_start < 0, ops.zeros_like(decayed), decayed)
        warm = self.learning_rate * (ops.cast(since_start, dtype) / self.num_warmup_steps)
        if not self.reference_jump:
            warm = ops.maximum(warm, 0.0)
        return ops.where(since_start < self.num_warmup_steps, warm, decayed)

    def _decayed(self, step, dtype: str):
        begin = 0 if self.reference_jump else self.start_warmup_step + self.num_warmup_steps
        length = max(self.num_train_steps - begin, 1)
        # Integers are subtracted and clipped before conversion: float32 is exact only up to 2**24.
        elapsed = ops.clip(ops.cast(step, "int32") - begin, 0, length)
        fraction = ops.cast(elapsed, dtype) / length
        span = self.learning_rate - self.end_learning_rate
        if self.decay == "constant":
            return self.learning_rate * ops.ones_like(fraction)
        if self.decay == "cosine":
            return span * (0.5 * (1.0 + ops.cos(math.pi * fraction))) + self.end_learning_rate
        return span * ops.power(1.0 - fraction, self.power) + self.end_learning_rate

    def get_config(self):
        return {name: getattr(self, name) for name in inspect.signature(WarmupSchedule).parameters}

    def _check(self) -> None:
        if self.decay not in get_args(Decay):
            raise ValueError(f"`decay` must be one of {', '.join(get_args(Decay))}. Received: decay={self.decay!r}.")
        if self.decay != "polynomial" and self.power != 1.0:
            raise ValueError(f"`power` needs decay='polynomial'. Received: power={self.power}, decay={self.decay!r}.")
        if self.decay == "constant" and self.end_learning_rate:
            raise ValueError(f"`end_learning_rate` must be 0 for a constant rate. Received: {self.end_learning_rate}.")
        for name, least in (("num_train_steps", 1), ("num_warmup_steps", 0), ("start_warmup_step", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"`{name}` must be an integer of at least {least}. Received: {name}={value!r}.")
            setattr(self, name, int(value))  # `get_config` must give JSON, not NumPy's integers
        for name in ("learning_rate", "end_learning_rate", "power"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ValueError(f"`{name}` must be a number of at least 0. Received: {name}={value!r}.")
        warmup_end = self.start_warmup_step + self.num_warmup_steps
        if warmup_end > self.num_train_steps and not self.reference_jump:
            raise ValueError(
                f"Warm-up must end within the run. Received: start_warmup_step={self.start_warmup_step}, "
                f"num_warmup_steps={self.num_warmup_steps}, num_train_steps={self.num_train_steps}; "
                "shorten warm-up or train longer."
            )
