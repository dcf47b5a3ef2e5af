"""The models whose steps are compiled, and batches for them."""

from typing import Any

import keras
import numpy as np

from albert_tf import AlbertConfig, AlbertEncoder, AlbertForPreTraining, AlbertForSequenceClassification
from albert_tf.optimizers import AdamW, Lamb, WarmupSchedule

DTYPE = "mixed_bfloat16"
PRETRAINING_LENGTH, FINETUNING_LENGTH = 512, 128


def pretraining(size: str, length: int = PRETRAINING_LENGTH, dtype: str = DTYPE, **arguments) -> tuple[Any, Any]:
    """A compiled model of a preset for pretraining, and a batch of one row, as `albert-tf pretrain` makes them."""
    model = AlbertForPreTraining(AlbertConfig.from_preset(size), dtype=dtype)
    rates = WarmupSchedule(0.00176, 125_000, num_warmup_steps=3125)
    model.compile(Lamb(rates, global_clipnorm=1.0), **arguments)
    predictions = round(0.15 * length)
    labels = {name: np.ones((1, predictions), "int32") for name in ("masked_lm_ids", "masked_lm_weights")}
    labels["masked_lm_weights"] = labels["masked_lm_weights"].astype("float32")
    inputs = {**_texts(length), "masked_lm_positions": np.ones((1, predictions), "int32")}
    return model, (inputs, {**labels, "sentence_order_labels": np.ones(1, "int32")})


def finetuning(size: str, length: int = FINETUNING_LENGTH, dropout: float = 0.1, **arguments) -> tuple[Any, Any]:
    """The same for fine-tuning on labels of texts."""
    config = AlbertConfig.from_preset(size).replace(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
    model = AlbertForSequenceClassification(config, num_labels=3, dtype=DTYPE)
    rates = WarmupSchedule(2e-5, 1000, num_warmup_steps=100)
    model.compile(AdamW(rates, global_clipnorm=1.0), **arguments)
    return model, (_texts(length), np.ones(1, "int32"))


def inference(size: str, length: int) -> tuple[Any, Any]:
    """An encoder and a batch of one row."""
    return AlbertEncoder(AlbertConfig.from_preset(size), dtype=DTYPE), (_texts(length),)


def rows(batch: Any, count: int) -> Any:
    """A batch of this many of its row."""
    return keras.tree.map_structure(lambda array: np.repeat(array, count, axis=0), batch)


def _texts(length: int) -> dict[str, np.ndarray]:
    return {name: np.ones((1, length), "int32") for name in ("input_ids", "attention_mask", "token_type_ids")}
