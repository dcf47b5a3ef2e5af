"""Gives our variables to Model Garden's models and compares every output.

    .venv-parity-model_garden/bin/python tools/parity/peer_model_garden.py runs/parity/peers

Its encoder shares one block between all layers and is given the tanh form of GELU, its own default. It has no class for
multiple choice.
"""

import importlib.metadata
import json
import os
import pathlib
import sys
import warnings

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # it is written for Keras 2, and TensorFlow asks at import

import numpy as np
import tensorflow as tf
from official.modeling import activations
from official.nlp.modeling import layers as mg_layers
from official.nlp.modeling import models as mg_models
from official.nlp.modeling import networks as mg_networks
from peer_table import Findings, load
from peer_weights import block_layers, fill

ARGUMENTS = {
    "vocab_size": "vocab_size",
    "embedding_size": "embedding_width",
    "hidden_size": "hidden_size",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "type_vocab_size",
}
LOGITS = "predictions/transform/logits"


def make_encoder(config, variables):
    """Their encoder with our weights."""
    encoder = mg_networks.AlbertEncoder(
        **{theirs: config[ours] for ours, theirs in ARGUMENTS.items()}, activation=activations.gelu, dict_outputs=True
    )
    layers = {
        "encoder/embeddings/word_embeddings": encoder.get_layer("word_embeddings"),
        "encoder/embeddings/position_embeddings": encoder.get_layer("position_embedding"),
        "encoder/embeddings/token_type_embeddings": encoder.get_layer("type_embeddings"),
        "encoder/embeddings/layer_norm": encoder.get_layer("embeddings/layer_norm"),
        "encoder/projection": encoder.get_layer("embedding_projection"),
    }
    if "encoder/pooler/kernel" in variables:
        layers["encoder/pooler"] = encoder.get_layer("pooler_transform")
    block = encoder.get_layer("transformer")
    layers |= block_layers(
        "0_0",
        block._attention_layer,
        block._attention_layer_norm,
        block._intermediate_dense,
        block._output_dense,
        block._output_layer_norm,
    )
    fill(layers, variables)
    return encoder


def encoder_outputs(model, inputs) -> dict[str, np.ndarray]:
    """All that the encoder gives, and its attentions, which it keeps to itself."""
    outputs = model(inputs)
    projected = tf.keras.Model(model.inputs, model.get_layer("embedding_projection").output)(inputs)
    states = [projected, *outputs["encoder_outputs"]]
    mask = mg_layers.SelfAttentionMask()(projected, inputs["input_mask"])
    attend = model.get_layer("transformer")._attention_layer
    attentions = [attend(h, h, attention_mask=mask, return_attention_scores=True)[1] for h in states[:-1]]
    return {
        "sequence_output": outputs["sequence_output"],
        "pooled_output": outputs["pooled_output"],
        "hidden_states": np.stack(states),
        "attentions": np.stack(attentions),
    }


def pretraining_outputs(encoder, variables, inputs) -> dict[str, np.ndarray]:
    """Masked LM at every position and sentence order, whose head has a pooler of its own there."""
    width = variables["encoder/projection/bias"].shape[0]
    order = mg_layers.ClassificationHead(inner_dim=width, num_classes=2, name="order")
    model = mg_models.BertPretrainerV2(encoder, mlm_activation=activations.gelu, classification_heads=[order])
    rows, length = inputs["input_word_ids"].shape
    inputs = {**inputs, "masked_lm_positions": np.tile(np.arange(length, dtype="int32"), (rows, 1))}
    model(inputs)  # makes the variables
    layers = {
        "masked_lm/transform": model.masked_lm.dense,
        "masked_lm/layer_norm": model.masked_lm.layer_norm,
        "encoder/pooler": order.dense,
        "sentence_order": order.out_proj,
    }
    fill(layers, variables)
    model.masked_lm.bias.assign(variables["masked_lm/output_bias"])
    outputs = model(inputs)
    return {"masked_lm_logits": outputs["mlm_logits"], "sentence_order_logits": outputs["order"]}


def classifier_outputs(encoder, variables, inputs) -> dict[str, np.ndarray]:
    """The text classifier."""
    model = mg_models.BertClassifier(encoder, num_classes=len(variables["classifier/bias"]))
    fill({"classifier": model.get_layer("sentence_prediction").out_proj}, variables)
    return {"logits": model(inputs)}


def token_outputs(encoder, variables, inputs) -> dict[str, np.ndarray]:
    """The token classifier."""
    model = mg_models.BertTokenClassifier(encoder, num_classes=len(variables["classifier/bias"]))
    fill({"classifier": model.get_layer(LOGITS)}, variables)
    return {"logits": model(inputs)["logits"]}


def span_outputs(encoder, variables, inputs) -> dict[str, np.ndarray]:
    """Question answering."""
    model = mg_models.BertSpanLabeler(encoder)
    fill({"qa_span": model.span_labeling.get_layer(LOGITS)}, variables)
    start, end = model(inputs)
    return {"start_logits": start, "end_logits": end}


TASKS = {
    "AlbertEncoder": lambda encoder, variables, inputs: encoder_outputs(encoder, inputs),
    "AlbertForPreTraining": pretraining_outputs,
    "AlbertForSequenceClassification": classifier_outputs,
    "AlbertForTokenClassification": token_outputs,
    "AlbertForQuestionAnswering": span_outputs,
}


def main(root: pathlib.Path) -> None:
    """Compares the config that Model Garden can have."""
    warnings.filterwarnings("ignore", "Input dict contained keys")  # its pretrainer hands all inputs to its encoder
    version = importlib.metadata.version("tf-models-official")
    findings = Findings(root, "model_garden", f"tf-models-official {version}, TensorFlow {tf.__version__}")
    batch = load(root / "inputs.npz")
    names = {"input_word_ids": "input_ids", "input_mask": "attention_mask", "input_type_ids": "token_type_ids"}
    inputs = {theirs: batch[ours] for theirs, ours in names.items()}
    for path in sorted(root.glob("*/albert_config.json")):
        config = json.loads(path.read_text())
        if config["num_hidden_groups"] * config["inner_group_num"] != 1 or config["hidden_act"] != "gelu_new":
            continue
        for name, outputs_of in TASKS.items():
            variables, expected = load(path.parent / name / "variables.npz"), load(path.parent / name / "outputs.npz")
            for output, theirs in outputs_of(make_encoder(config, variables), variables, inputs).items():
                findings.add(path.parent.name, f"{name}: {output}", theirs, expected[output])
    findings.write()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
