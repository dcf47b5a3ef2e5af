"""Proves that SavedModels in bfloat16, with constants for variables and with XLA give the Keras models' answers."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from albert_tf import AlbertForSequenceClassification, pipeline
from albert_tf.export import export_saved_model, saved_model, serve_base
from albert_tf.serving.engine import load_engine
from albert_tf.serving.saved_model_engine import SavedModelEngine
from tests.export.test_alone import ALONE
from tests.parameters import MadeOnce, first_of
from tests.tokenization.wordpiece_golden import korean
from tests.toy_task import CONFIG

FORMS = {
    "bfloat16": {"precision": "bfloat16"},
    "frozen": {"frozen": True},
    "frozen_bfloat16": {"precision": "bfloat16", "frozen": True},
    "xla": {"xla": True},
    "all": {"precision": "bfloat16", "frozen": True, "xla": True},
}
TEXTS = ("One short text.", "", "  Ünïcödé, 1,000 Wörter und 한국어 — and more of them ", "many words " * 40, "five")
WEIGHTS = CONFIG.num_parameters("encoder") + 3 * CONFIG.hidden_size + 3


@pytest.fixture(scope="module")
def reports(folders, tmp_path_factory):
    """ExportReport by kind and form."""
    output = tmp_path_factory.mktemp("forms")

    def make(kind, form):
        return export_saved_model(folders[kind], output, f"{kind}_{form}", **FORMS[form])

    pairs = [(kind, form) for kind in folders for form in FORMS]
    return MadeOnce({pair: lambda pair=pair: make(*pair) for pair in pairs})


def nodes_of(folder):
    """All nodes of the graph, and its functions."""
    (graph,) = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs
    functions = graph.graph_def.library.function
    return [*graph.graph_def.node, *(node for function in functions for node in function.node_def)], functions


@pytest.mark.parametrize(("kind", "form"), first_of([("classifier", "bfloat16"), ("pairs", "all")]))
def test_answers_are_the_models(reports, folders, kind, form):
    restored, texts = pipeline(reports[kind, form].folder), [TEXTS, TEXTS[::-1]][: 1 + (kind == "pairs")]
    expected = [list(found.probabilities.values()) for found in pipeline(folders[kind])(*texts)]
    together, alone = restored(*texts), [restored(*row) for row in list(zip(*texts))[:3]]
    for found in (together, alone):
        given = [list(prediction.probabilities.values()) for prediction in found]
        difference = np.abs(np.array(given) - expected[: len(given)]).max()
        assert 1e-5 < difference <= saved_model.BFLOAT16_TOLERANCE
    assert reports[kind, form].largest_difference <= saved_model.BFLOAT16_TOLERANCE


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "form"), [("questions_beam", "frozen_bfloat16"), ("tags", "all")])
def test_tasks_whose_graphs_differ_most_have_all_forms(reports, kind, form):
    assert 1e-5 < reports[kind, form].largest_difference <= saved_model.BFLOAT16_TOLERANCE


@pytest.mark.parametrize("form", ["frozen", pytest.param("all", marks=pytest.mark.exhaustive)])
def test_frozen_weights_are_constants_and_stored_once(reports, form):
    report = reports["pairs", form]
    nodes, _ = nodes_of(report.folder)
    assert not {node.op for node in nodes} & {"VarHandleOp", "ReadVariableOp", "ResourceGather", "VariableV2"}
    dtype = tf.float32 if form == "frozen" else tf.bfloat16
    constants = [node.attr["value"].tensor for node in nodes if node.op == "Const"]
    size = sum(len(tensor.tensor_content) for tensor in constants if tensor.dtype == dtype.as_datatype_enum)
    assert size == pytest.approx(WEIGHTS * dtype.size, rel=0.01)


@pytest.mark.exhaustive
def test_a_vocabulary_of_words_goes_with_constants(tmp_path):
    vocabulary = korean()
    config = CONFIG.replace(vocab_size=vocabulary.vocab_size)
    AlbertForSequenceClassification(config, num_labels=2).save_pretrained(tmp_path / "m")
    vocabulary.save_pretrained(tmp_path / "m")
    report = export_saved_model(tmp_path / "m", tmp_path, "words", frozen=True)
    assert report.largest_difference < 1e-5
    assert any("Wordpiece" in node.op for node in nodes_of(report.folder)[0])


@pytest.mark.exhaustive
def test_xla_compiles_what_has_no_strings(reports):
    nodes, functions = nodes_of(reports["pairs", "all"].folder)
    compiled = [function for function in functions if function.attr["_XlaMustCompile"].b]
    assert compiled
    for function in compiled:
        ops = {node.op for node in function.node_def}
        assert {"MatMul", "Softmax"} <= ops
        assert not any("entencepiece" in op or "String" in op for op in ops)
    assert any("SentencepieceTokenize" in node.op for node in nodes)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["pretrained", "tags", "questions_beam", "choices", "embedding"])
def test_shapes_of_programs_do_not_change_answers(reports, kind):
    assert reports[kind, "xla"].largest_difference <= 1e-5
    graph = saved_model_pb2.SavedModel.FromString((reports[kind, "xla"].folder / "saved_model.pb").read_bytes())
    nodes = [node for part in graph.meta_graphs[0].graph_def.library.function for node in part.node_def]
    assert "/device:CPU:0" in {node.device for node in nodes if node.op == "LowerBound"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["classifier", "questions"])
def test_a_server_computes_each_shape_first(reports, kind, monkeypatch, caplog):
    caplog.set_level("INFO", "albert_tf.serving")
    shapes, run = [], SavedModelEngine.run

    def recording(engine, signature, inputs):
        rows, length = run(engine, "tokenize", inputs)["input_ids"].shape
        shapes.append((length, rows))
        return run(engine, signature, inputs)

    monkeypatch.setattr(SavedModelEngine, "run", recording)
    assert load_engine(reports[kind, "xla"].folder, max_rows=2).lengths == [16, 32, 48]
    assert caplog.messages[-1].endswith("1 for 6 shapes, up to 2 x 48.")
    assert shapes[2:] == [(length, rows) for length in (48, 32, 16) for rows in (2, 1)]
    shapes.clear()
    assert not load_engine(reports[kind, "frozen"].folder, max_rows=2).lengths
    assert len(shapes) == 1


def test_bfloat16_is_half_as_large_and_says_so(reports):
    folder = reports["classifier", "bfloat16"].folder
    assert (folder / "variables" / "variables.data-00000-of-00001").stat().st_size < 2 * WEIGHTS * 1.01
    products = [node for node in nodes_of(folder)[0] if node.op == "MatMul"]
    assert {tf.as_dtype(node.attr["T"].type) for node in products} == {tf.bfloat16}
    outputs = tf.saved_model.load(str(folder)).signatures["tokens"].structured_outputs
    assert {spec.dtype for spec in outputs.values()} == {tf.float32, tf.string}
    card = json.loads((folder / "model.json").read_text())
    assert (card["precision"], card["frozen"], card["xla"]) == ("bfloat16", False, False)
    assert 1e-5 < card["largest_difference"] == reports["classifier", "bfloat16"].largest_difference
    assert "| Precision | bfloat16; differs by at most" in (folder / "MODEL.md").read_text()


@pytest.mark.exhaustive
def test_all_forms_run_without_this_package(reports, run_python, tmp_path):
    forms = {"bfloat16": "classifier", "frozen": "pairs", "all": "pairs"}
    inputs = {"classifier": {"text": TEXTS}, "pairs": {"text": TEXTS, "text_pair": TEXTS}}
    request = [(str(reports[kind, form].folder), "serving_default", inputs[kind]) for form, kind in forms.items()]
    run_python("-I", "-c", ALONE, json.dumps(request), tmp_path / "found.npz")
    found = np.load(tmp_path / "found.npz")
    for folder, name, texts in request:
        expected = pipeline(folder)(*texts.values())
        scores = [prediction.score for prediction in expected]
        np.testing.assert_allclose(found[f"{folder} {name} score"], scores, rtol=0, atol=1e-5)


@pytest.mark.exhaustive
def test_what_cannot_be_exported(folders, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"`precision` must be 'float32' or 'bfloat16'. Received: precision='int8'"):
        export_saved_model(folders["classifier"], tmp_path, "m", precision="int8")
    monkeypatch.setattr(saved_model, "BFLOAT16_TOLERANCE", 1e-9)
    with pytest.raises(ValueError, match=r"in bfloat16 differ by .*\. Nothing was written; export the model in"):
        export_saved_model(folders["classifier"], tmp_path, "m", precision="bfloat16")
    monkeypatch.setattr(serve_base, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"frozen graph must not be larger than 2 GB\. Received: weights of 1,9"):
        export_saved_model(folders["classifier"], tmp_path, "m", frozen=True)
    assert not any(tmp_path.rglob("saved_model.pb"))
