"""Times tracing and compiling a training step, with layers one by one and as a loop; `--jit-compile` for XLA.

The network is `tiny` with more layers; the first call of a step counts, and the median of ten further ones.
"""

import argparse
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import albert_tf


def time_step(num_hidden_layers: int, scan_layers: bool, jit_compile: bool) -> tuple[float, float, int]:
    """Seconds of the first call and of a later one, and the nodes of the graph."""
    config = albert_tf.AlbertConfig.from_preset("tiny").replace(num_hidden_layers=num_hidden_layers, vocab_size=1000)
    model = albert_tf.AlbertForSequenceClassification(config, num_labels=2)
    model.compile(keras.optimizers.SGD(0.1), scan_layers=scan_layers, jit_compile=jit_compile)
    ids = np.random.default_rng(0).integers(5, 1000, (4, 32)).astype("int32")
    batches = iter(tf.data.Dataset.from_tensors(({"input_ids": ids}, np.arange(4) % 2)).repeat())
    step = model.make_train_function()
    seconds = []
    for _ in range(11):
        begun = time.perf_counter()
        float(step(batches)["loss"])
        seconds.append(time.perf_counter() - begun)
    graph = tf.function(lambda: model({"input_ids": ids})["logits"]).get_concrete_function().graph.as_graph_def()
    nodes = len(graph.node) + sum(len(function.node_def) for function in graph.library.function)
    return seconds[0], statistics.median(seconds[1:]), nodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jit-compile", action="store_true")
    jit_compile = parser.parse_args().jit_compile
    print("| layers | | first step, s | later steps, ms | nodes of a forward pass |\n|---|---|---|---|---|")
    for layers in (12, 24, 48):
        for scan in (False, True):
            first, later, nodes = time_step(layers, scan, jit_compile)
            print(
                f"| {layers} | {'loop' if scan else 'one by one'} | {first:.1f} | {later * 1e3:.0f} | {nodes:,} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
