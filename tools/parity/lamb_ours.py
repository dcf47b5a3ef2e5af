"""Takes 50 steps of our LAMB under several settings and records them, with the gradients, for `lamb_tfa.py`.

    python tools/parity/lamb_ours.py runs/parity/lamb.npz

The variables are those of a small ALBERT for pretraining. The gradients are those of its own loss along one run, and
are the same for all settings.
"""

import json
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

from albert_tf import AlbertConfig, AlbertForPreTraining
from albert_tf.optimizers import ALBERT_EXCLUSIONS, Lamb, WarmupSchedule

STEPS = 50
CONFIG = AlbertConfig(
    vocab_size=60,
    embedding_size=16,
    hidden_size=24,
    num_hidden_layers=2,
    num_hidden_groups=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=16,
)
DEFAULTS = {
    "learning_rate": 0.01,
    "decay_steps": None,
    "weight_decay": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "exclude_from_weight_decay": list(ALBERT_EXCLUSIONS),
    "exclude_from_layer_adaptation": None,
}
SETTINGS = {
    "bias and LayerNorm excluded": {},
    "no exclusions": {"exclude_from_weight_decay": None},
    "different lists": {"exclude_from_layer_adaptation": ["embeddings", "pooler/kernel"]},
    "excluded from decay alone": {"exclude_from_layer_adaptation": []},
    "rate decays to 0": {"decay_steps": STEPS, "learning_rate": 0.02},
    "no decay": {"weight_decay": 0.0},
    "other betas and epsilon": {"beta_1": 0.8, "beta_2": 0.98, "epsilon": 1e-4, "weight_decay": 0.1},
}


def make_optimizer(learning_rate, decay_steps, **arguments) -> Lamb:
    """Our optimizer for one setting."""
    return Lamb(WarmupSchedule(learning_rate, decay_steps) if decay_steps else learning_rate, **arguments)


def make_batch(generator) -> tuple[dict, dict]:
    """Random ids, masks of different lengths, masked positions and labels."""
    shape, predictions, tokens = (4, 12), (4, 3), CONFIG.vocab_size
    lengths = generator.integers(6, 13, (4, 1))
    inputs = {
        "input_ids": generator.integers(5, tokens, shape),
        "attention_mask": (np.arange(12) < lengths).astype("int32"),
        "token_type_ids": (np.arange(12) >= lengths // 2).astype("int32"),
        "masked_lm_positions": generator.integers(0, 6, predictions),
    }
    labels = {
        "masked_lm_ids": generator.integers(5, tokens, predictions),
        "masked_lm_weights": np.ones(predictions, "float32"),
        "sentence_order_labels": generator.integers(0, 2, 4),
    }
    return inputs, labels


def record_gradients(model) -> list[list[np.ndarray]]:
    """The gradients of each step of one run, which moves the model."""
    optimizer, generator, recorded = make_optimizer(**DEFAULTS), np.random.default_rng(1), []
    for _ in range(STEPS):
        inputs, labels = make_batch(generator)
        with tf.GradientTape() as tape:
            loss = model.compute_loss(y=labels, y_pred=model(inputs))
        gradients = tape.gradient(loss, model.trainable_variables)
        recorded.append([tf.convert_to_tensor(gradient).numpy() for gradient in gradients])
        optimizer.apply([tf.constant(gradient) for gradient in recorded[-1]], model.trainable_variables)
    return recorded


def run(settings, model, start, gradients) -> list[list[np.ndarray]]:
    """All variables after each step, from the same start."""
    for variable, value in zip(model.trainable_variables, start, strict=True):
        variable.assign(value)
    optimizer, trajectory = make_optimizer(**settings), []
    for step in gradients:
        optimizer.apply([tf.constant(gradient) for gradient in step], model.trainable_variables)
        trajectory.append([variable.numpy() for variable in model.trainable_variables])
    return trajectory


def main(path: pathlib.Path) -> None:
    """Runs every setting and writes one file."""
    keras.utils.set_random_seed(0)
    model = AlbertForPreTraining(CONFIG)
    names = [variable.path for variable in model.trainable_variables]
    start = [variable.numpy() for variable in model.trainable_variables]
    gradients = record_gradients(model)
    arrays = {f"start/{name}": value for name, value in zip(names, start, strict=True)}
    settings = {title: DEFAULTS | changes for title, changes in SETTINGS.items()}
    runs = {title: run(one, model, start, gradients) for title, one in settings.items()}
    for place, steps in {"gradient": gradients, **runs}.items():
        for index, name in enumerate(names):
            arrays[f"{place}/{name}"] = np.stack([step[index] for step in steps])
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, names=np.array(names), settings=np.array(json.dumps(settings)), **arrays)
    print(f"albert_tf, Keras {keras.__version__}: {len(settings)} settings, {len(names)} variables, {STEPS} steps")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
