"""Loads the modules of `hub_ours.py` with `hub.KerasLayer`, compares their outputs and fine-tunes them.

    .venv-parity-hub/bin/python tools/parity/hub_theirs.py runs/parity/hub

Runs in an environment of its own, without albert_tf, with the Keras 2 (tf_keras) that TF Hub needs. The exit status is
1 where a number differs by more than 1e-5, or where fine-tuning does not lower the loss and change every variable.
"""

import pathlib
import sys
import warnings

import numpy as np

TOLERANCE = 1e-5
OURS = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}


def differences(hub, tf_keras, root: pathlib.Path, expected: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest absolute difference of each output, from texts to vectors in one Keras 2 model."""
    import tensorflow as tf

    text = tf_keras.layers.Input(shape=(), dtype=tf.string)
    inputs = hub.KerasLayer(str(root / "modules/preprocess"))(text)
    outputs = hub.KerasLayer(str(root / "modules/encoder"))(inputs)
    texts = tf.constant(expected["texts"])
    ids, given = tf_keras.Model(text, [inputs, outputs]).predict(texts, verbose=0)
    encoder = hub.load(str(root / "modules/encoder"))
    masked = hub.KerasLayer(encoder.mlm)({**ids, "masked_lm_positions": expected["masked_lm_positions"]})
    signature = hub.KerasLayer(encoder, signature="tokens", signature_outputs_as_dict=True)
    of_tokens = signature(
        {"input_ids": ids["input_word_ids"], "input_mask": ids["input_mask"], "segment_ids": ids["input_type_ids"]}
    )
    layers = {f"encoder_outputs/{index}": states for index, states in enumerate(given.pop("encoder_outputs"))}
    pairs = {
        **{name: (ids[name], expected[ours]) for name, ours in OURS.items()},
        **{name: (array, expected[name]) for name, array in {**given, **layers}.items()},
        "mlm: mlm_logits": (masked["mlm_logits"], expected["mlm_logits"]),
        **{f"signature tokens: {name}": (array, expected[name]) for name, array in of_tokens.items()},
    }
    return {name: float(np.abs(np.asarray(one, "float64") - other).max()) for name, (one, other) in pairs.items()}


def finetune(hub, tf_keras, root: pathlib.Path) -> tuple[list[float], int, int]:
    """Losses of the epochs, and how many of how many variables of the encoder have changed."""
    import tensorflow as tf

    tf_keras.utils.set_random_seed(
        1
    )  # of the head and of dropout: without one, a fine-tuning in four does not begin to fall
    words = {0: "rain grief storm cold", 1: "sun joy garden bloom"}
    rows = [(f"the old {word} went by", float(label)) for label, text in words.items() for word in text.split()]
    text = tf_keras.layers.Input(shape=(), dtype=tf.string)
    encoder = hub.KerasLayer(str(root / "modules/encoder"), trainable=True)
    outputs = encoder(hub.KerasLayer(str(root / "modules/preprocess"))(text))
    model = tf_keras.Model(text, tf_keras.layers.Dense(1)(outputs["pooled_output"]))
    model.compile(tf_keras.optimizers.Adam(2e-3), tf_keras.losses.BinaryCrossentropy(from_logits=True))
    before = [variable.numpy() for variable in encoder.trainable_variables]
    texts, labels = (tf.constant(column) for column in zip(*rows))
    losses = model.fit(texts, labels, epochs=100, verbose=0).history["loss"]
    changed = [np.any(variable.numpy() != old) for variable, old in zip(encoder.trainable_variables, before)]
    return losses, sum(changed), len(changed)


def main(root: pathlib.Path) -> int:
    """Prints one table; the exit status."""
    warnings.simplefilter("ignore")  # TF Hub imports pkg_resources, which is deprecated
    import tensorflow as tf
    import tensorflow_hub as hub
    import tensorflow_text  # noqa: F401  # registers the tokenizer's operations
    import tf_keras

    print(f"tensorflow {tf.__version__}, tensorflow-hub {hub.__version__}, tf_keras {tf_keras.__version__}")
    with np.load(root / "expected.npz") as file:
        found = differences(hub, tf_keras, root, dict(file))
    for name, difference in found.items():
        print(f"  {name:36}{difference:10.1e}")
    losses, changed, total = finetune(hub, tf_keras, root)
    print(f"fine-tuning: loss {losses[0]:.3f} -> {losses[-1]:.3f}, {changed} of {total} variables changed")
    passed = max(found.values()) <= TOLERANCE and losses[-1] < 0.5 * losses[0] and changed == total > 0
    print(f"allowed {TOLERANCE:.0e}: {'pass' if passed else 'FAIL'}")
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
