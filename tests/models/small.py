"""A model small enough for a test, and a batch for it."""

import numpy as np

from albert_tf import AlbertConfig

CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=8,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=32,
    classifier_dropout_prob=0.0,
)


def make_inputs(rows=5, length=11, seed=0):
    """Ids, mask and types as int32 [rows, length], the rows of random lengths."""
    random = np.random.default_rng(seed)
    lengths = random.integers(3, length + 1, (rows, 1))
    return {
        "input_ids": random.integers(4, CONFIG.vocab_size, (rows, length)).astype("int32"),
        "attention_mask": (np.arange(length) < lengths).astype("int32"),
        "token_type_ids": random.integers(0, 2, (rows, length)).astype("int32"),
    }


def make_masked_inputs(kind, length):
    """Four ragged rows, one of only padding, with gaps or with examples in each; or, "full", without a mask."""
    inputs = make_inputs(4, length)
    if kind == "full":
        return {"input_ids": inputs["input_ids"]}
    inputs["attention_mask"] = (np.arange(length) < np.array([[length], [9], [1], [0]])).astype("int32")
    if kind == "gaps":
        inputs["attention_mask"][:2, 2:4] = 0
    if kind == "packed":
        inputs["example_ids"] = np.tile(np.arange(length) // 5, (4, 1)).astype("int32")
        inputs["position_ids"] = np.tile(np.arange(length) % 5, (4, 1)).astype("int32")
    return inputs


def make_choices(rows=5, choices=3, length=11, seed=0):
    """The same for texts to choose from, int32 [rows, choices, length]."""
    inputs = make_inputs(rows * choices, length, seed)
    return {name: array.reshape(rows, choices, length) for name, array in inputs.items()}


def make_pretraining_batch(rows=5, length=11, predictions=4, seed=0):
    """Inputs with positions, and labels; the rows have unequal numbers of masked tokens, the first all of them."""
    random = np.random.default_rng(seed)
    positions = np.sort(random.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)[:, :predictions], axis=1)
    counts = np.r_[predictions, random.integers(0, predictions + 1, rows - 1)][:, None]
    labels = {
        "masked_lm_ids": random.integers(4, CONFIG.vocab_size, (rows, predictions)).astype("int32"),
        "masked_lm_weights": (np.arange(predictions) < counts).astype("float32"),
        "sentence_order_labels": random.integers(0, 2, rows).astype("int32"),
    }
    return {**make_inputs(rows, length, seed), "masked_lm_positions": positions.astype("int32")}, labels


def largest_difference(model, other):
    """Between the weights of two models."""
    return max(np.max(np.abs(a - b)) for a, b in zip(model.get_weights(), other.get_weights(), strict=True))
