"""Proves that a SavedModel answers as its functions do."""

import gc

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.inference.saved_model_network import restore
from albert_tf.inference.signatures import Signature
from albert_tf.serving.engine import load_engine
from albert_tf.serving.saved_model_engine import load
from albert_tf.tasks.outputs import TensorSpec


class Lengths(tf.Module):
    def __init__(self):
        self.table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), 0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def lengths(self, text):
        with tf.control_dependencies([tf.debugging.assert_greater(tf.strings.length(text), 0, "A text is empty.")]):
            return {"length": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def masked(self, text):
        has_mask = tf.reduce_all(tf.strings.regex_full_match(text, r".*\[MASK\].*"))
        with tf.control_dependencies([tf.debugging.Assert(has_mask, ["Each text must contain [MASK]."])]):
            return {"length": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="input_ids")])
    def lookup(self, input_ids):
        return {"value": tf.gather(tf.constant([1.0, 2.0]), input_ids)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def known(self, text):
        return {"value": self.table.lookup(text)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    module, folder = Lengths(), tmp_path_factory.mktemp("lengths") / "1"
    others = {name: getattr(module, name) for name in ("masked", "lookup", "known")}
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.lengths, **others})
    return folder


def test_signatures_are_described_and_answered(folder):
    engine = load_engine(folder)
    assert engine.name == "tensorflow"
    assert engine.signatures["serving_default"] == Signature(
        {"text": TensorSpec("string", (None,))}, {"length": TensorSpec("int32", (None,))}
    )
    for texts in ([], [b"a", "ü".encode()], [b"x" * (1 + index % 100) for index in range(1000)]):
        answer = engine.run("serving_default", {"text": np.array(texts, object)})["length"]
        assert answer.tolist() == list(map(len, texts))


def test_what_the_graph_refuses_is_one_sentence(folder):
    engine = load(folder)
    with pytest.raises(ValueError, match=r"^A text is empty\.$"):
        engine.run("serving_default", {"text": np.array([b"a", b""], object)})
    with pytest.raises(ValueError, match=r"^Each text must contain \[MASK\]\.$"):
        engine.run("masked", {"text": np.array([b"none"], object)})
    with pytest.raises(ValueError, match=r"^The model refused the input: indices\[0\] = 2 is not in \[0, 2\)\.$"):
        engine.run("lookup", {"input_ids": np.array([2], np.int32)})


def test_tables_are_freed_with_the_model(folder):
    models = [restore(folder)]
    table = next(one for one in models[0].signatures["known"].captured_inputs if one.dtype == tf.resource)
    assert tf.raw_ops.LookupTableSizeV2(table_handle=table) == 2
    # A function that is traced must not take over what frees them.
    tf.function(lambda: models.clear() or gc.collect(), autograph=False).get_concrete_function()
    with pytest.raises(tf.errors.NotFoundError):
        tf.raw_ops.LookupTableSizeV2(table_handle=table)


def test_a_damaged_folder_and_a_wrong_engine_are_refused(folder, tmp_path):
    (tmp_path / "variables").mkdir()
    (tmp_path / "saved_model.pb").write_bytes(b"no graph")
    with pytest.raises(ValueError, match="is not a SavedModel, or is damaged"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"--engine openvino runs an ONNX model, but .* holds none"):
        load_engine(folder, "openvino")
    with pytest.raises(ValueError, match=r"is a SavedModel, whose precision was chosen .* precision='int8'; leave it"):
        load_engine(folder, precision="int8")
