"""Writes small models of ours as Google's checkpoints, and what they give for a batch with padding.

    python tools/parity/google_ours.py runs/parity/google

For each config there is a folder, and in it one for each model, with `model.ckpt-best`, `albert_config.json` and
`arrays.npz`: `input:NAME` for what goes in, `output:NAME` for what comes out, losses among them. `google_theirs.py`
reads these in an environment of its own.

Letters: B batch, L sequence, P predictions.
"""

import pathlib
import sys

import keras
import numpy as np
from peer_ours import CONFIG, LENGTHS, make_inputs

import albert_tf
from albert_tf import checkpoints
from albert_tf.models.inputs import ENCODER_INPUTS, only

CONFIGS = {
    "one group": CONFIG,
    "2 groups of 2": CONFIG.replace(num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2),
    "E = D, relu, 3 groups": CONFIG.replace(
        embedding_size=32, hidden_act="relu", num_hidden_layers=5, num_hidden_groups=3, num_attention_heads=2
    ),
}
MODELS = {
    "pretraining": (albert_tf.AlbertForPreTraining, {}),
    "classifier": (albert_tf.AlbertForSequenceClassification, {"num_labels": 3}),
    "regression": (albert_tf.AlbertForSequenceClassification, {"problem": "regression"}),
    "squad_v1": (albert_tf.AlbertForQuestionAnswering, {"head": "span", "mask_padding": False}),
    "squad_v2": (albert_tf.AlbertForQuestionAnswering, {"head": "beam", "start_n_top": 3, "end_n_top": 2}),
}


def labels_for(name: str) -> dict[str, np.ndarray]:
    """What a loss is computed from; there is none for answers, whose scores are compared as they are."""
    generator, rows = np.random.default_rng(2), len(LENGTHS)
    if name == "pretraining":
        return {
            "masked_lm_ids": generator.integers(0, CONFIG.vocab_size, (rows, 3)).astype("int32"),
            "masked_lm_weights": np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, 0]], "float32"),
            "sentence_order_labels": generator.integers(0, 2, rows).astype("int32"),
        }
    if name == "classifier":
        return {"labels": generator.integers(0, 3, rows).astype("int32")}
    return {"labels": generator.normal(size=rows).astype("float32")} if name == "regression" else {}


def arrays_of(name: str, model, inputs) -> dict[str, np.ndarray]:
    """Inputs and outputs of one model."""
    inputs, labels = dict(inputs), labels_for(name)
    if name == "pretraining":
        inputs["masked_lm_positions"] = np.array([[1, 5, 11], [0, 6, 0], [3, 0, 0], [0, 0, 0]], "int32")  # [B, P]
    if name == "squad_v2":
        inputs["p_mask"] = (1 - inputs["attention_mask"]).astype("int32")
        inputs["p_mask"][:3, 0] = 1
    outputs = {**model.encoder(only(ENCODER_INPUTS, inputs)), **model(inputs)}
    if labels:
        terms = model.loss_terms(labels.get("labels", labels), outputs)
        outputs |= {term: value.mean() for term, value in terms.items()}
    given = {f"input:{key}": array for key, array in {**inputs, **labels}.items()}
    return given | {f"output:{key}": keras.ops.convert_to_numpy(value) for key, value in outputs.items()}


def main(root: pathlib.Path) -> None:
    """Writes everything."""
    inputs = make_inputs()
    for title, config in CONFIGS.items():
        for name, (kind, arguments) in MODELS.items():
            model, generator = kind(config, **arguments), np.random.default_rng(1)
            for path, variable in model.variables_by_path().items():
                variable.assign(generator.normal(1.0 if path.endswith("gamma") else 0.0, 0.1, variable.shape))
            checkpoints.save_google(model, root / title / name / "model.ckpt-best")
            np.savez(root / title / name / "arrays.npz", **arrays_of(name, model, inputs))
    print(f"albert_tf: {len(CONFIGS)} configs, {len(MODELS)} models each")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
