"""Gives our variables to KerasHub's models and compares every output.

    .venv-parity-keras_hub/bin/python tools/parity/peer_keras_hub.py runs/parity/peers

Its GELU is always the tanh form. Its classes are a backbone, a masked LM and a text classifier; the last stands in for
sentence order too.
"""

import json
import pathlib
import sys

import keras
import keras_hub
import numpy as np
from peer_table import Findings, load
from peer_weights import block_layers, fill

ARGUMENTS = {
    "vocab_size": "vocabulary_size",
    "embedding_size": "embedding_dim",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_hidden_groups": "num_groups",
    "inner_group_num": "num_inner_repetitions",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "max_position_embeddings": "max_sequence_length",
}
EPSILON = "its masked-LM head normalises with an epsilon of 1e-5"


def make_backbone(config, variables):
    """Their encoder with our weights."""
    backbone = keras_hub.models.AlbertBackbone(**{theirs: config[ours] for ours, theirs in ARGUMENTS.items()})
    layers = {
        "encoder/embeddings/word_embeddings": backbone.token_embedding,
        "encoder/embeddings/position_embeddings": backbone.position_embedding,
        "encoder/embeddings/token_type_embeddings": backbone.segment_embedding,
        "encoder/embeddings/layer_norm": backbone.embeddings_layer_norm,
        "encoder/projection": backbone.embeddings_projection,
    }
    if "encoder/pooler/kernel" in variables:
        layers["encoder/pooler"] = backbone.pooled_dense
    for group, blocks in enumerate(backbone.transformer_layers):
        for inner, block in enumerate(blocks):
            layers |= block_layers(
                f"{group}_{inner}",
                block._self_attention_layer,
                block._self_attention_layer_norm,
                block._feedforward_intermediate_dense,
                block._feedforward_output_dense,
                block._feedforward_layer_norm,
            )
    fill(layers, variables)
    return backbone


def states_and_attentions(backbone, inputs) -> dict[str, np.ndarray]:
    """What the backbone keeps to itself: its layers called one by one."""
    projected = backbone.get_layer("embedding_projection").output
    hidden = keras.Model(backbone.inputs, projected)(inputs)
    states, attentions = [hidden], []
    for group in backbone.transformer_layers:
        for layer in group * (backbone.num_layers // backbone.num_groups):
            hidden, attention = layer(hidden, padding_mask=inputs["padding_mask"], return_attention_scores=True)
            states.append(hidden)
            attentions.append(attention)
    return {"hidden_states": np.stack(states), "attentions": np.stack(attentions)}


def compare_encoder(findings, folder: pathlib.Path, config, inputs) -> None:
    """The encoder with everything that it gives."""
    expected = load(folder / "AlbertEncoder" / "outputs.npz")
    backbone = make_backbone(config, load(folder / "AlbertEncoder" / "variables.npz"))
    found = {**backbone(inputs), **states_and_attentions(backbone, inputs)}
    for name, theirs in found.items():
        findings.add(folder.name, f"AlbertEncoder: {name}", theirs, expected[name])


def compare_masked_lm(findings, folder: pathlib.Path, config, inputs) -> None:
    """The masked LM at every position, with its own epsilon and with ours."""
    length = inputs["token_ids"].shape[1]
    inputs = {**inputs, "mask_positions": np.tile(np.arange(length, dtype="int32"), (len(inputs["token_ids"]), 1))}
    for name, deviation in (("AlbertForMaskedLM, epsilon 1e-5", ""), ("AlbertForMaskedLM", EPSILON)):
        variables = load(folder / name / "variables.npz")
        model = keras_hub.models.AlbertMaskedLM(make_backbone(config, variables))
        head = model.masked_lm_head
        layers = {
            "masked_lm/transform": head._intermediate_dense,
            "masked_lm/layer_norm": head._intermediate_layer_norm,
        }
        fill(layers, variables)
        head._bias.assign(variables["masked_lm/output_bias"])
        expected = load(folder / name / "outputs.npz")["logits"]
        findings.add(folder.name, f"{name}: logits", model(inputs), expected, deviation)


def compare_classifier(findings, folder: pathlib.Path, config, inputs, name: str, head: str, output: str) -> None:
    """The text classifier, under the name of the head that it stands for."""
    variables, expected = load(folder / name / "variables.npz"), load(folder / name / "outputs.npz")[output]
    model = keras_hub.models.AlbertTextClassifier(make_backbone(config, variables), num_classes=expected.shape[-1])
    fill({head: model.output_dense}, variables)
    findings.add(folder.name, f"{name}: {output}", model(inputs), expected)


def main(root: pathlib.Path) -> None:
    """Compares every config that KerasHub can have."""
    findings = Findings(root, "keras_hub", f"keras-hub {keras_hub.__version__}, Keras {keras.__version__}")
    batch = load(root / "inputs.npz")
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask", "segment_ids": "token_type_ids"}
    inputs = {theirs: batch[ours] for theirs, ours in names.items()}
    for path in sorted(root.glob("*/albert_config.json")):
        config = json.loads(path.read_text())
        if config["hidden_act"] != "gelu_new":
            continue
        compare_encoder(findings, path.parent, config, inputs)
        compare_masked_lm(findings, path.parent, config, inputs)
        for task in (
            ("AlbertForPreTraining", "sentence_order", "sentence_order_logits"),
            ("AlbertForSequenceClassification", "classifier", "logits"),
        ):
            compare_classifier(findings, path.parent, config, inputs, *task)
    findings.write()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
