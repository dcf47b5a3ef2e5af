"""Proves that every container of the Hugging Face layout is read to the bit, and that what is none is one sentence."""

import json
import shutil
import struct

import numpy as np
import pytest
import safetensors.numpy

from albert_tf import (
    AlbertEncoder,
    AlbertForMaskedLM,
    AlbertForMultipleChoice,
    AlbertForPreTraining,
    AlbertForQuestionAnswering,
    AlbertForSequenceClassification,
    AlbertForTokenClassification,
    checkpoints,
)
from tests.checkpoints.comparison import assert_close, assert_same, change_tensors, tensors_in
from tests.disk import change_json

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
FORMATS = "hf_for_pretraining_formats"


def inputs_of(arrays):
    return {name: arrays[name] for name in INPUTS}


# === The same weights in other containers ===


@pytest.mark.parametrize("container", ["sharded", "zip", "legacy", "old_names"])
def test_other_containers_of_the_same_weights(container, golden):
    expected = checkpoints.read(golden("hf_for_pretraining").folder)
    found = checkpoints.read(golden(FORMATS).folder / container)
    assert found.config == expected.config
    assert_same(found.arrays, expected.arrays)


@pytest.mark.parametrize("file", ["tf_model.h5", "model.safetensors"])
def test_weights_of_tensorflow_classes(file, golden, tmp_path):
    case = golden("hf_tensorflow_for_pretraining")
    for name in (file, "config.json"):
        shutil.copy(case.folder / name, tmp_path)
    outputs = AlbertForPreTraining.from_pretrained(tmp_path)(inputs_of(case.arrays))
    assert_close(outputs["masked_lm_logits"], case.arrays["prediction_logits"])
    assert_close(outputs["sentence_order_logits"], case.arrays["sop_logits"])


# The heads of other classes, as their files name them.
TENSORFLOW_HEADS = {
    AlbertForSequenceClassification: "classifier",
    AlbertForTokenClassification: "classifier",
    AlbertForMultipleChoice: "classifier",
    AlbertForQuestionAnswering: "qa_outputs",
}


@pytest.mark.parametrize("model", [AlbertEncoder, AlbertForMaskedLM, *TENSORFLOW_HEADS])
def test_tasks_of_tensorflow_classes(model, golden, tmp_path):
    """Total, or an error."""
    case = golden("hf_tensorflow_for_pretraining")
    shutil.copy(case.folder / "config.json", tmp_path)
    tensors = tensors_in(case.folder)
    if head := TENSORFLOW_HEADS.get(model):
        tensors = {name: tensor for name, tensor in tensors.items() if name.startswith("albert/")}
        kernel = np.arange(16 if model is AlbertForMultipleChoice else 32, dtype=np.float32).reshape(16, -1)
        tensors |= {f"{head}/kernel:0": kernel, f"{head}/bias:0": kernel[0]}
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    read = model.from_pretrained(tmp_path)
    if head:
        np.testing.assert_array_equal(read.layers[-1].get_weights()[0], kernel)
    name = "albert/encoder/embedding_hidden_mapping_in/kernel:0"
    safetensors.numpy.save_file(tensors | {f"albert/more/{name}": tensors[name]}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"that a model of its config does not have: albert\.more\.albert"):
        model.from_pretrained(tmp_path)
    del tensors[name]
    safetensors.numpy.save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="does not fit the model: missing encoder/projection/kernel"):
        model.from_pretrained(tmp_path)


def test_shards_of_pytorch_files(golden, tmp_path):
    whole = golden(FORMATS).folder / "zip"
    shutil.copy(whole / "pytorch_model.bin", tmp_path / "pytorch_model-00001-of-00001.bin")
    shutil.copy(whole / "config.json", tmp_path)
    names = [*tensors_in(golden("hf_for_pretraining").folder), "predictions.decoder.weight", "predictions.decoder.bias"]
    index = {"weight_map": dict.fromkeys(names, "pytorch_model-00001-of-00001.bin")}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert_same(checkpoints.read(tmp_path).arrays, checkpoints.read(whole).arrays)


@pytest.mark.parametrize("container", ["fp16", "bf16"])
def test_half_precision_is_widened(container, golden):
    case, full = golden(FORMATS), golden("hf_for_pretraining")
    model = AlbertForPreTraining.from_pretrained(case.folder / container)
    assert {variable.dtype for variable in model.weights} == {"float32"}
    outputs = model(inputs_of(full.arrays))
    assert_close(outputs["masked_lm_logits"], case.arrays[f"{container}_prediction_logits"])
    assert_close(outputs["sentence_order_logits"], case.arrays[f"{container}_sop_logits"])


# === Bare encoders, and a projection between equal widths ===


def test_a_bare_encoder(golden):
    case = golden("hf_model")
    model = AlbertEncoder.from_pretrained(case.folder)
    outputs = model(inputs_of(case.arrays), output_hidden_states=True, output_attentions=True)
    assert_close(outputs["sequence_output"], case.arrays["last_hidden_state"])
    assert_close(outputs["pooled_output"], case.arrays["pooler_output"])
    assert_close(np.stack(outputs["hidden_states"]), case.arrays["hidden_states"])
    assert_close(np.stack(outputs["attentions"]), case.arrays["attentions"])
    assert_close(model(case.arrays["input_ids"])["sequence_output"], case.arrays["last_hidden_state_ids_only"])
    assert_close(model(case.arrays["input_ids"])["pooled_output"], case.arrays["pooler_output_ids_only"])


def test_an_encoder_without_pooler(golden):
    case = golden("hf_model_no_pooler")
    with pytest.raises(ValueError, match=r"missing encoder/pooler/kernel, .*it has no pooler: pass new_head=True"):
        AlbertEncoder.from_pretrained(case.folder)
    model = AlbertEncoder.from_pretrained(case.folder, add_pooling_layer=False)
    outputs = model(inputs_of(case.arrays), output_hidden_states=True)
    assert set(outputs) == {"sequence_output", "hidden_states"}
    assert_close(outputs["sequence_output"], case.arrays["last_hidden_state"])
    assert_close(np.stack(outputs["hidden_states"]), case.arrays["hidden_states"])


def test_a_projection_between_equal_widths(golden):
    case = golden("hf_groups2_inner2_for_pretraining")
    model = AlbertForPreTraining.from_pretrained(case.folder)
    assert model.config.embedding_projection is True
    assert sum(np.prod(variable.shape) for variable in model.weights) == model.config.num_parameters("pretraining")
    encoder = AlbertEncoder.from_pretrained(case.folder)
    outputs = encoder(inputs_of(case.arrays), output_hidden_states=True, output_attentions=True)
    assert_close(np.stack(outputs["hidden_states"]), case.arrays["hidden_states"])
    assert_close(np.stack(outputs["attentions"]), case.arrays["attentions"])
    assert_close(outputs["pooled_output"], case.arrays["pooler_output"])


HEADS = {
    "hf_model": AlbertEncoder,
    "hf_model_no_pooler": AlbertEncoder,
    "hf_for_pretraining": AlbertForPreTraining,
    "hf_groups2_inner2_for_pretraining": AlbertForPreTraining,
    "hf_for_masked_lm": AlbertForMaskedLM,
    "hf_for_sequence_classification": AlbertForSequenceClassification,
    "hf_for_sequence_regression": AlbertForSequenceClassification,
    "hf_for_token_classification": AlbertForTokenClassification,
    "hf_for_multiple_choice": AlbertForMultipleChoice,
    "hf_for_question_answering": AlbertForQuestionAnswering,
}


@pytest.mark.parametrize("name", HEADS)
def test_out_as_it_came_in(name, golden, tmp_path):
    folder, kind = golden(name).folder, HEADS[name]
    arguments = {"add_pooling_layer": False} if "no_pooler" in name else {}
    kind.from_pretrained(folder, **arguments).save_pretrained(tmp_path)
    assert_same(tensors_in(tmp_path), tensors_in(folder))
    theirs, ours = (json.loads((path / "config.json").read_text()) for path in (folder, tmp_path))
    same = set(theirs) - {"dtype", "tie_word_embeddings", "transformers_version"}
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}


def test_every_kept_projection_stays(golden, tmp_path):
    model = AlbertForPreTraining.from_pretrained(golden("hf_groups2_inner2_for_pretraining").folder)
    projection = model.encoder.projection
    projection.kernel.assign(np.eye(32))
    projection.bias.assign(np.zeros(32))
    model.save_pretrained(tmp_path)
    assert checkpoints.read(tmp_path).config.embedding_projection is True


# === What does not fit ===


@pytest.fixture
def folder(golden, tmp_path):
    return shutil.copytree(golden("hf_for_pretraining").folder, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def sharded(golden, tmp_path):
    return shutil.copytree(golden(FORMATS).folder / "sharded", tmp_path, dirs_exist_ok=True)


def test_tied_weights_that_differ(sharded):
    path, index_file = sharded / "model-00004-of-00004.safetensors", sharded / "model.safetensors.index.json"
    tensors = safetensors.numpy.load_file(path)
    tensors["predictions.decoder.bias"] = tensors["predictions.bias"] + 1
    safetensors.numpy.save_file(tensors, path)
    with pytest.raises(ValueError, match=r"does not match the tensors of its files \(predictions\.decoder\.bias\)"):
        checkpoints.read(sharded)
    index = json.loads(index_file.read_text())
    index["weight_map"]["predictions.decoder.bias"] = path.name
    index_file.write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"`predictions\.decoder\.bias` and `predictions\.bias` differ in .*ties them"):
        checkpoints.read(sharded)


def test_an_absent_shard(sharded):
    (sharded / "model-00002-of-00004.safetensors").unlink()
    with pytest.raises(ValueError, match=r"not beside it: model-00002-of-00004\.safetensors; download"):
        checkpoints.read(sharded)


@pytest.mark.parametrize(
    "index", ["{}", '{"weight_map": 3}', '{"weight_map": {"a": "../b"}}', '{"weight_map": {"a": 1}}']
)
def test_a_wrong_index(index, sharded):
    (sharded / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ValueError, match=r"does not map tensors to files beside it .*; download it again"):
        checkpoints.read(sharded)


def with_length(length):
    return lambda content: struct.pack("<Q", length) + content[8:]


def with_header(edit):
    def change(content):
        end = 8 + struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8:end])
        edit(header["albert.pooler.bias"], header)
        written = json.dumps(header).encode()
        return struct.pack("<Q", len(written)) + written + content[end:]

    return change


DAMAGE = {
    **{f"cut at {kept}": lambda content, kept=kept: content[:kept] for kept in (0, 7, 400, -1)},
    **{f"a header of {length} bytes": with_length(length) for length in (0, 7, 2**62, 2**64 - 1)},
    "overlap": with_header(lambda bias, header: bias.update(data_offsets=header["predictions.bias"]["data_offsets"])),
    "shape": with_header(lambda bias, header: bias.update(shape=[2**40])),
    "type": with_header(lambda bias, header: bias.update(dtype="F99")),
    "hole": with_header(lambda bias, header: header.pop("albert.pooler.bias")),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file(damage, folder):
    path = folder / "model.safetensors"
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(ValueError, match=r"model\.safetensors .*not a safetensors file .*damaged .*again"):
        checkpoints.read(folder)


@pytest.mark.parametrize(("dtype", "size"), [("F8_E4M3", 8), ("F4", 4), ("C64", 64), ("I32", 32)])
def test_weights_that_are_no_floats(dtype, size, folder):
    header, data = {}, b""
    for name, array in tensors_in(folder).items():
        kind, content = "F32", array.tobytes()
        if name == "predictions.LayerNorm.bias":
            kind, content = dtype, bytes(array.size * size // 8)
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    written = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(written)) + written + data)
    with pytest.raises(ValueError, match=r"not a safetensors file of known types|floating-point weights are expected"):
        checkpoints.read(folder)


def test_values_that_are_not_finite(folder):
    change_tensors(folder, lambda tensors: tensors["albert.pooler.weight"].__setitem__((3, 4), np.nan))
    with pytest.warns(UserWarning, match=r"`encoder/pooler/kernel` in .* has NaN or infinite values"):
        AlbertForPreTraining.from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"model_type": "bert"}, r"`model_type` must be 'albert'\. Received: model_type='bert'; this is another model"),
        ({"hiden_size": 3}, r"must be known\. Received: 'hiden_size'; did you mean 'hidden_size'"),
        ({"num_attention_heads": 5}, r"hidden_size=32, num_attention_heads=5"),
        ({"vocab_size": 121}, r"word_embeddings \(120, 16\) for \(121, 16\)"),
    ],
)
def test_configs_that_do_not_fit(changes, complaint, folder):
    change_json(folder / "config.json", **changes)
    with pytest.raises(ValueError, match=complaint):
        AlbertForPreTraining.from_pretrained(folder)


# === Folders that are something else ===


def test_nothing_there(tmp_path):
    with pytest.raises(ValueError, match="nowhere does not exist; check the spelling"):
        AlbertForPreTraining.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is empty; pass the folder of a model"):
        AlbertForPreTraining.from_pretrained(tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match=r"`path` must be a folder with config\.json and model\.safetensors"):
        AlbertForPreTraining.from_pretrained(tmp_path)


EXPORTS = {
    "graph": ["1/saved_model.pb"],
    "onnx": ["2/model.json", "2/onnx/model.onnx", "1/saved_model.pb"],
    "phone": ["1/model.tflite", "1/model.json"],
    "hub": ["encoder/saved_model.pb", "preprocess/saved_model.pb"],
    "run": ["model/config.json", "model/model.safetensors"],
}


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("graph", "graph is a SavedModel, which only `predict`, `evaluate` and `serve` read; pass the folder that"),
        ("onnx", "onnx is an ONNX folder, which only `predict`, `evaluate` and `serve` read; pass the folder that"),
        ("phone", r"phone is a LiteRT export, which LiteRT runs; saved_models/README\.md shows how\."),
        ("hub", "hub does not take texts, like all modules for TF Hub; export it with --format saved_model"),
        ("", r"is a folder of models; give one of them: \S+graph, \S+hub, \S+onnx, \S+phone\."),
        ("run", r"run is a folder of models; give one of them: \S+run/model\."),
    ],
)
def test_an_export_is_named_for_what_it_is(tmp_path, name, complaint):
    for folder, files in EXPORTS.items():
        for file in files:
            (tmp_path / folder / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / file).touch()
    with pytest.raises(ValueError, match=complaint):
        AlbertForPreTraining.from_pretrained(tmp_path / name)
