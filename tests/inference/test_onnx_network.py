"""Proves that ONNX folders answer in any order, from any thread, without TensorFlow, and that mistakes are named."""

import concurrent.futures
import shutil
import sys

import numpy as np
import pytest

from albert_tf.inference.loading import load_onnx
from albert_tf.inference.onnx_network import p_mask_of
from albert_tf.inference.pipeline import pipeline
from albert_tf.serving.engine import OnnxEngine, has_amx, load_engine
from tests.disk import change_json

TEXTS = ("One short text.", "", "  Ünïcödé, 1,000 Wörter und 한국어 — and more of them ", "many words " * 40)
LONG = "The old man went by the house of Anna Smith in Berlin, with very cold rain. " * 6

# Runs in a process of its own; ends with an error if the threads stop each other, or if a signal ends it.
IN_THREADS = """
import concurrent.futures, faulthandler, pathlib, signal, sys, threading
import numpy as np
from albert_tf.serving.engine import OnnxEngine
faulthandler.dump_traceback_later(90, exit=True)
engine = OnnxEngine(pathlib.Path(sys.argv[1]), sys.argv[2])
engine.run("serving_default", {"text": np.array([b"One short text."], object)})
barrier = threading.Barrier(8)
def compute(_):
    barrier.wait()
    for step in range(300):
        ids = np.ones((1 + step % 4, 3 + step % 29), np.int32)
        engine.run("tokens", dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), ids))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(compute, range(8)))
another = OnnxEngine(pathlib.Path(sys.argv[1]), sys.argv[2])
del engine, another  # in the order in which they came
signal.signal(signal.SIGTERM, lambda *_: None)
signal.raise_signal(signal.SIGTERM)
print("FOREIGN", sorted({"tensorflow", "keras", "onnx", "jax", "torch"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def engines(onnx_folders):
    """A classifier on both engines."""
    return [OnnxEngine(onnx_folders["classifier"], name) for name in ("onnxruntime", "openvino")]


@pytest.fixture
def copy(onnx_folders, tmp_path):
    """A folder to change."""
    return shutil.copytree(onnx_folders["classifier"], tmp_path / "copy")


def strings(values):
    return np.vectorize(str.encode, otypes=[object])(np.array(values, object))


def ask(engine, signature="serving_default", **texts):
    return engine.run(signature, {name: strings(values) for name, values in texts.items()})


def same(given, expected):
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)


def test_pieces_are_padded_and_orders_are_probabilities(onnx_folders):
    engine = OnnxEngine(onnx_folders["pretrained"])
    outputs = ask(engine, text=["He put his [MASK] on.", "[MASK] and [MASK]"])
    assert outputs["pieces"].shape == (2, 2, 10)
    assert set(outputs["pieces"][0, 1]) == {b""}
    assert not outputs["probabilities"][0, 1].any()
    assert outputs["probabilities"][1].min() > 0
    orders = ask(engine, "sentence_order", text=TEXTS, text_pair=TEXTS[::-1])["in_order"]
    same(orders, pipeline(onnx_folders["pretrained"])(TEXTS, TEXTS[::-1]))
    for text in ("No mask.", LONG + "[MASK]"):
        with pytest.raises(ValueError, match=r"Each text must contain \[MASK\], all of them within its first 62"):
            ask(engine, text=["A [MASK].", text])


def test_no_answer_begins_in_a_question_or_at_its_end():
    mask, types = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]], [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]]
    found = p_mask_of({"attention_mask": np.array(mask), "token_type_ids": np.array(types)})
    assert found.tolist() == [[0, 1, 1, 0, 0, 1], [0, 1, 0, 1, 1, 1]]


def test_a_passage_or_question_without_tokens_is_refused(onnx_folders):
    with pytest.raises(ValueError, match=r"^The passage of question 'Why\?' has no tokens; delete it\.$"):
        ask(OnnxEngine(onnx_folders["questions"]), question=["Who?", "Why?"], context=["The sun.", " "])
    with pytest.raises(ValueError, match=r"^The question about 'The sun\.' has no tokens; write one, or delete it\.$"):
        ask(OnnxEngine(onnx_folders["questions"]), question=["Who?", " "], context=["The sun.", "The sun."])


def test_questions_above_the_threshold_are_not_answered(onnx_folders, tmp_path):
    shutil.copytree(onnx_folders["questions"], tmp_path / "model")
    change_json(tmp_path / "model" / "model.json", no_answer_threshold=-100.0)
    outputs = ask(OnnxEngine(tmp_path / "model"), question=["Where?"], context=[LONG])
    assert (outputs["answer"][0], outputs["start"][0], outputs["end"][0]) == (b"", -1, -1)


def test_answers_do_not_depend_on_threads_or_batches(engines):
    texts = [text[: 7 * number] for number, text in enumerate([LONG] * 24)]
    for engine in engines:
        together = ask(engine, text=texts)["probabilities"]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            alone = list(pool.map(lambda text, engine=engine: ask(engine, text=[text])["probabilities"][0], texts))
        same(alone, together)


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_threads_with_other_shapes_do_not_wait_for_ever_and_nothing_heavy_is_imported(onnx_folders, run_python, engine):
    printed = run_python("-c", IN_THREADS, onnx_folders["classifier"], engine).stdout
    assert printed.split("FOREIGN ")[1].strip() == "[]"


def test_ids_that_do_not_fit_are_named(engines):
    one = np.ones([1, 4], np.int32)
    ids = {"input_ids": one, "attention_mask": one, "token_type_ids": one}
    for inputs, message in (
        ({**ids, "input_ids": one * 30000}, r"`input_ids` must be integers from 0 to 29999"),
        ({**ids, "attention_mask": one * 2}, r"`attention_mask` must be integers from 0 to 1"),
        ({name: np.ones([1, 65], np.int32) for name in ids}, r"must have at most 64 columns"),
    ):
        with pytest.raises(ValueError, match=message):
            engines[0].run("tokens", inputs)


def test_bfloat16_is_of_openvino_and_near_float32(onnx_folders, engines):
    found = ask(OnnxEngine(onnx_folders["classifier"], precision="bfloat16"), text=TEXTS)["probabilities"]
    expected = ask(engines[1], text=TEXTS)["probabilities"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02)  # equal where the processor has no bfloat16
    with pytest.raises(ValueError, match=r"`engine` must be 'openvino' for precision='bfloat16'"):
        load_onnx(onnx_folders["classifier"], "onnxruntime", "bfloat16")


def test_the_server_computes_in_bfloat16_where_the_processor_has_units_for_it(onnx_folders):
    expected = {"openvino": "bfloat16" if has_amx() else "float32", "onnxruntime": "float32"}
    for name, precision in expected.items():
        engine = load_engine(onnx_folders["classifier"], name)
        assert (engine.name, engine.precision) == (name, precision)
    assert load_engine(onnx_folders["classifier"], precision="float32").precision == "float32"


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_a_damaged_file_is_named(copy, engine):
    weights = copy / "onnx" / "model.onnx"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=rf"model\.onnx cannot be loaded by {engine} .*export the model again"):
        load_onnx(copy, engine)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": ["a", "b"]}, r"`labels` must have 3 names, one for each number of the model\. Received: a, b"),
        ({"labels": ["a", "a", "b"]}, r"`labels` must be a list of different strings"),
        ({"max_length": 65}, r"`max_length` must not exceed the model's 64 positions\. Received: 65"),
        ({"max_length": "48"}, r"model\.json: `max_length` is invalid .*Received: '48'"),
        ({"task": "naming"}, r"`task` must be one of sequence_classification, .*Received: naming"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change, message, copy):
    change_json(copy / "model.json", **change)
    with pytest.raises(ValueError, match=message):
        pipeline(copy)(["a text"])


def test_settings_may_be_edited(copy):
    change_json(copy / "model.json", labels=["a", "b", "c"], comment="renamed")
    assert list(pipeline(copy)("a text").probabilities) == ["a", "b", "c"]


def test_what_is_not_there_is_named(onnx_folders):
    with pytest.raises(ValueError, match=r"has no ONNX file in int8, only in float32"):
        load_onnx(onnx_folders["classifier"], precision="int8")
    with pytest.raises(ValueError, match=r"`engine` must be one of auto, openvino, onnxruntime"):
        load_onnx(onnx_folders["classifier"], "tvm")


def test_an_engine_that_is_not_installed_is_named(onnx_folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "openvino", None)
    assert load_onnx(onnx_folders["classifier"]).network.name == "onnxruntime"
    with pytest.raises(ValueError, match=r"openvino is not installed; pip install '.*\[openvino\]'"):
        load_onnx(onnx_folders["classifier"], "openvino")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    commands = r"pip install '.*\[openvino\]', or pip install '.*\[onnx\]'"
    with pytest.raises(ValueError, match=f"Neither openvino nor onnxruntime is installed; {commands}"):
        load_onnx(onnx_folders["classifier"])
