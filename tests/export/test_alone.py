"""Proves that all signatures run with TensorFlow and tensorflow-text alone, by operations that old versions have."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

TEXTS = ("One short text.", "", "Ünïcödé, 1,000 Wörter und 한국어 — and more", "many words " * 40)
MASKED = ("He put his [MASK] on.", "[MASK]", "The old [MASK]. So")
IDS = [[2, 13, 1, 3], [2, 25, 3, 0]]
TOKENS = {"input_ids": IDS, "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 0]], "token_type_ids": [[0] * 4] * 2}
QUESTIONS = {"question": ["Who?", "What? " * 20], "context": [TEXTS[3], TEXTS[0]]}
# TensorFlow Serving may be built with a much older tensorflow-text, such as 2.12, which has these already.
OLD_OPS = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceTokenizeWithOffsetsOp"}
# Inputs by kind of export and signature.
CASES = {
    **{(kind, "serving_default"): {"text": TEXTS} for kind in ("classifier", "embedding", "tags")},
    **{(kind, "serving_default"): QUESTIONS for kind in ("questions", "questions_beam")},
    ("classifier", "labels"): {},
    ("classifier", "tokens"): TOKENS,
    ("classifier", "attention"): {"text": TEXTS},
    ("pairs", "serving_default"): {"text": TEXTS, "text_pair": TEXTS[::-1]},
    ("pretrained", "serving_default"): {"text": MASKED},
    ("pretrained", "sentence_order"): {"text": TEXTS, "text_pair": TEXTS[::-1]},
    ("choices", "serving_default"): {"context": TEXTS[:2], "choices": [["a", "b"], ["c", "d"]]},
}
# Writes the outputs of all cases.
ALONE = """
import functools, json, sys
sys.modules["albert_tf"] = None
import numpy as np, tensorflow as tf, tensorflow_text
arrays, load = {}, functools.cache(tf.saved_model.load)
for folder, signature, inputs in json.loads(sys.argv[1]):
    function = load(folder).signatures[signature]
    outputs = function(**{name: tf.constant(values) for name, values in inputs.items()})
    arrays |= {f"{folder} {signature} {name}": tensor.numpy() for name, tensor in outputs.items()}
arrays = {name: array.astype(bytes) if array.dtype == object else array for name, array in arrays.items()}
np.savez(sys.argv[2], **arrays)
"""


@pytest.mark.exhaustive
def test_outputs_without_this_package(exports, run_python, tmp_path):
    request = [(str(exports[kind].folder), name, inputs) for (kind, name), inputs in CASES.items()]
    run_python("-I", "-c", ALONE, json.dumps(request), tmp_path / "found.npz")
    found, load = dict(np.load(tmp_path / "found.npz")), functools.cache(tf.saved_model.load)
    for folder, name, inputs in request:
        signature = load(folder).signatures[name]
        for key, tensor in signature(**{key: tf.constant(values) for key, values in inputs.items()}).items():
            given = found.pop(f"{folder} {name} {key}")
            if tensor.dtype == tf.string:
                np.testing.assert_array_equal(given, tensor.numpy().astype(bytes))
            else:
                np.testing.assert_allclose(given, tensor, rtol=0, atol=1e-5)
    assert not found


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _ in CASES))
def test_only_old_operations_of_tensorflow_text_are_added(exports, kind):
    content = (exports[kind].folder / "saved_model.pb").read_bytes()
    (graph,) = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]
    custom = {node.op for node in nodes if not hasattr(tf.raw_ops, node.op)} - {
        each.signature.name for each in functions
    }
    assert "SentencepieceTokenizeOp" in custom
    assert custom <= OLD_OPS
