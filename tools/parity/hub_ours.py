"""Exports a small model with random weights for TF Hub, and writes what tokenizer and Keras model give for some texts.

    python tools/parity/hub_ours.py runs/parity/hub

`modules` holds the SavedModels; `expected.npz` the ids by our names, and the outputs by TF Hub's. `hub_theirs.py` reads
these in an environment of its own.
"""

import pathlib
import sys

import keras
import numpy as np

from albert_tf import AlbertConfig, AlbertForPreTraining, AlbertTokenizer
from albert_tf.export import export_hub

TEXTS = ["One short text.", "", "Ünïcödé, 1,000 words — and more 둘.", "many words " * 100]
CONFIG = AlbertConfig(
    vocab_size=30000,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=128,
    hidden_dropout_prob=0.1,
    initializer_range=0.2,
)


def main(root: pathlib.Path) -> None:
    """Writes the modules and the numbers."""
    keras.utils.set_random_seed(0)
    model, tokenizer = AlbertForPreTraining(CONFIG), AlbertTokenizer.english()
    model.save_pretrained(root / "model")
    tokenizer.save_pretrained(root / "model")
    report = export_hub(root / "model", root / "modules")
    inputs = tokenizer(TEXTS, max_length=128, padding="max_length")
    positions = np.array([[1, 2], [0, 0], [3, 9], [5, 127]], "int32")
    outputs = model.encoder(inputs, output_hidden_states=True)
    layers = {f"encoder_outputs/{index}": states for index, states in enumerate(outputs["hidden_states"][1:])}
    np.savez(
        root / "expected.npz",
        texts=TEXTS,
        masked_lm_positions=positions,
        mlm_logits=model({**inputs, "masked_lm_positions": positions})["masked_lm_logits"],
        default=outputs["pooled_output"],
        pooled_output=outputs["pooled_output"],
        sequence_output=outputs["sequence_output"],
        **layers,
        **inputs,
    )
    print(f"albert_tf, Keras {keras.__version__}: modules in {report.folder}, {', '.join(report.signatures)}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
