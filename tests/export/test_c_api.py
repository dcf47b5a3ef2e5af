"""Proves that exports run with TensorFlow's C API and tensorflow-text's operations alone, as in TensorFlow Serving."""

import base64
import functools
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2

TEXTS = ("One short text.", "", "Ünïcödé, 1,000 Wörter und 한국어 — and more", "many words " * 40)
MASKED = ("He put his [MASK] on.", "[MASK]", "The old [MASK]. So")
IDS = [[2, 13, 1, 3], [2, 25, 3, 0]]
# TensorFlow Serving may be built with a much older tensorflow-text, such as 2.12, which has these already.
OLD_OPS = {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceTokenizeWithOffsetsOp"}
# Inputs by kind of export and signature.
CASES = {
    ("classifier", "serving_default"): {"text": TEXTS},
    ("classifier", "labels"): {},
    ("classifier", "tokens"): {
        "input_ids": IDS,
        "attention_mask": [[1, 1, 1, 1], [1, 1, 1, 0]],
        "token_type_ids": [[0, 0, 0, 0], [0, 0, 0, 0]],
    },
    ("classifier", "attention"): {"text": TEXTS},
    ("pairs", "serving_default"): {"text": TEXTS, "text_pair": TEXTS[::-1]},
    ("regression", "serving_default"): {"text": TEXTS},
    ("pretrained", "serving_default"): {"text": MASKED},
    ("pretrained", "sentence_order"): {"text": TEXTS, "text_pair": TEXTS[::-1]},
    ("embedding", "serving_default"): {"text": TEXTS},
    ("questions", "serving_default"): {"question": ["Who?", "What? " * 20], "context": [TEXTS[3], TEXTS[0]]},
    ("questions_beam", "serving_default"): {"question": ["Who?", "What? " * 20], "context": [TEXTS[3], TEXTS[0]]},
    ("tags", "serving_default"): {"text": TEXTS},
    ("choices", "serving_default"): {"context": TEXTS[:2], "choices": [["a", "b"], ["c", "d"]]},
}


def read(folder):
    (graph,) = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs
    return graph


@pytest.fixture(scope="module")
def answers(exports, run_python):
    """The outputs of all exports, from a process without Python TensorFlow."""
    request = {}
    for (kind, name), inputs in CASES.items():
        request[f"{kind}/{name}"] = {"folder": str(exports[kind].folder), "signature": name, "inputs": inputs}
    printed = run_python("-I", pathlib.Path(__file__).with_name("c_api.py"), json.dumps(request)).stdout
    return json.loads(printed.split("ANSWERS")[1])


@functools.cache
def loaded(folder):
    return tf.saved_model.load(str(folder))


def ops_of(answers, name):
    return {op.name for op in op_def_pb2.OpList.FromString(base64.b64decode(answers[name])).op}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_outputs_are_those_of_python(answers, exports, kind, name):
    restored, given = loaded(exports[kind].folder), answers[f"{kind}/{name}"]
    inputs = {key: tf.constant(values) for key, values in CASES[kind, name].items()}
    expected = restored.signatures[name](**inputs)
    assert set(given) == set(expected)
    for key, tensor in expected.items():
        if tensor.dtype == tf.string:
            assert given[key] == np.char.decode(tensor.numpy().astype(bytes)).tolist()
        else:
            np.testing.assert_allclose(given[key], tensor, rtol=0, atol=1e-5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", dict.fromkeys(kind for kind, _ in CASES))
def test_only_old_operations_of_tensorflow_text_are_added(answers, exports, kind):
    graph = read(exports[kind].folder).graph_def
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    custom = {node.op for node in nodes} - ops_of(answers, "core_ops")
    assert "SentencepieceTokenizeOp" in custom
    assert custom <= OLD_OPS <= ops_of(answers, "all_ops") - ops_of(answers, "core_ops")
