"""One side of `speed.py`: builds a model, then times a call for each line that it reads.

Letters: B batch, L sequence.
"""

import argparse
import os
import pathlib
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

SIZES = {  # base_v2, as each library calls it
    "vocab_size": 30000,
    "embedding_size": 128,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}


def main() -> None:
    """Prepares the call, says "ready", and prints the seconds of one call for each line of standard input."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("work", choices=("inference", "training"))
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "int8"), required=True)
    parser.add_argument("--folder", type=pathlib.Path, help="exports of base_v2, see `speed.py`")
    options = parser.parse_args()
    ids = np.random.default_rng(0).integers(5, SIZES["vocab_size"], (options.batch, options.length)).astype("int32")
    call = SIDES[options.side](options, ids, np.arange(options.batch, dtype="int32") % 2)
    for _ in range(2):
        call()
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        call()
        print(time.perf_counter() - begun, flush=True)


def ours(options, ids, labels):
    """The Keras model of this package."""
    import albert_tf
    from albert_tf.inference.keras_network import BATCHES_BEFORE_CONSTANTS, KerasNetwork

    policy = "float32" if options.dtype == "float32" else "mixed_bfloat16"
    config = albert_tf.AlbertConfig.from_preset("base_v2")
    model = albert_tf.AlbertForSequenceClassification(config, num_labels=2, dtype=policy)
    for variable in model.weights:  # optimizers of graphs drop the biases of a new model, which are zeros
        variable.assign(np.asarray(variable) + np.random.default_rng(0).normal(0, 0.02, variable.shape))
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    if options.work == "training":
        model.compile(albert_tf.optimizers.AdamW(1e-5))
        return keras_step(model, (inputs, labels))
    network = KerasNetwork(model, traces_first=True)  # of `pipeline` and `predict`
    for _ in range(BATCHES_BEFORE_CONSTANTS if options.dtype == "bfloat16" else 0):
        network.compute(inputs)
    return lambda: network.compute(inputs)


def keras_hub(options, ids, labels):
    """KerasHub's classifier."""
    import keras
    import tensorflow as tf

    model = keras_hub_classifier(None, "float32" if options.dtype == "float32" else "mixed_bfloat16")
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    if options.work == "training":
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.AdamW(1e-5, weight_decay=0.01), loss=loss)
        return keras_step(model, (inputs, labels))
    function = tf.function(lambda inputs: model(inputs, training=False))
    inputs = {name: tf.constant(array) for name, array in inputs.items()}
    return lambda: function(inputs).numpy()


def keras_hub_classifier(preprocessor, dtype, sizes=SIZES):
    """KerasHub's classifier of these sizes."""
    import keras_hub

    backbone = keras_hub.models.AlbertBackbone(
        vocabulary_size=sizes["vocab_size"],
        num_layers=sizes["num_hidden_layers"],
        num_heads=sizes["num_attention_heads"],
        embedding_dim=sizes["embedding_size"],
        hidden_dim=sizes["hidden_size"],
        intermediate_dim=sizes["intermediate_size"],
        max_sequence_length=sizes.get("max_position_embeddings", 512),
        dropout=0.0,
        dtype=dtype,
    )
    dropout = sizes.get("classifier_dropout_prob", 0.0)
    return keras_hub.models.AlbertTextClassifier(backbone, num_classes=2, preprocessor=preprocessor, dropout=dropout)


def keras_step(model, batch):
    """One step of `fit`."""
    import tensorflow as tf

    iterator = iter(tf.data.Dataset.from_tensors(batch).repeat())
    model.make_train_function()
    return lambda: float(model.train_function(iterator)["loss"])


def torch(options, ids, labels):
    """transformers' classifier in PyTorch, with its fused attention."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.AlbertConfig(
        **SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0, num_labels=2
    )
    model = transformers.AlbertForSequenceClassification(config)
    inputs = {"input_ids": torch.tensor(ids).long(), "attention_mask": torch.ones(ids.shape, dtype=torch.long)}
    half = torch.autocast("cpu", torch.bfloat16, enabled=options.dtype == "bfloat16")
    if options.work == "inference":
        model.eval()
        if options.dtype == "bfloat16":
            model = model.to(torch.bfloat16)

        def infer():
            with torch.inference_mode():
                return model(**inputs).logits.float().numpy()

        return infer
    optimizer = torch.optim.AdamW(model.parameters(), 1e-5)

    def step():
        optimizer.zero_grad()
        with half:
            loss = model(**inputs, labels=torch.tensor(labels).long()).loss
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def saved_model(options, ids, labels):
    """The SavedModel of this package, run as `albert-tf serve` runs it."""
    from albert_tf.serving.saved_model_engine import load

    return _tokens(load(options.folder / f"saved_model_{options.dtype}/1"), ids)


def openvino(options, ids, labels):
    """The ONNX export of this package in OpenVINO."""
    return _onnx("openvino", options, ids)


def onnxruntime(options, ids, labels):
    """The ONNX export of this package in onnxruntime."""
    return _onnx("onnxruntime", options, ids)


def _onnx(name, options, ids):
    from albert_tf.serving.engine import OnnxEngine

    return _tokens(OnnxEngine(options.folder / "onnx/1", name, options.dtype), ids)


def _tokens(engine, ids):
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return lambda: engine.run("tokens", inputs)


def products(options, ids, labels):
    """The matrix products of the blocks alone, in TensorFlow: what no implementation on it can beat."""
    import tensorflow as tf

    batch, length = ids.shape
    hidden, inner, heads = (SIZES[name] for name in ("hidden_size", "intermediate_size", "num_attention_heads"))
    kernels = (hidden, 3 * hidden), (hidden, hidden), (hidden, inner), (inner, hidden)
    # Leading axes, then m, k, n of [m, k] x [k, n].
    sizes = [((), batch * length, k, n) for k, n in kernels]
    sizes += [((batch, heads), length, *ends) for ends in ((hidden // heads, length), (length, hidden // heads))]
    if options.work == "training":  # the gradients of both factors
        sizes += [(lead, m, n, k) for lead, m, k, n in sizes] + [(lead, k, m, n) for lead, m, k, n in sizes]
    pairs = [
        tuple(tf.cast(tf.random.normal((*lead, *factor)), options.dtype) for factor in ((m, k), (k, n)))
        for lead, m, k, n in sizes
    ]

    def multiply():
        for _ in range(SIZES["num_hidden_layers"]):
            for a, b in pairs:
                product = tf.matmul(a, b)
        return product.numpy()  # the last one; a CPU runs one operation after the other

    return multiply


SIDES = {side.__name__: side for side in (ours, keras_hub, torch, saved_model, openvino, onnxruntime, products)}


if __name__ == "__main__":
    main()
